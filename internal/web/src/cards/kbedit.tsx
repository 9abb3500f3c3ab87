// Editor writes a page of the knowledge base, whole. What somebody else wrote meanwhile is
// never replaced unseen, and what was typed here is never thrown away.
import { useRef, useState } from "preact/hooks";
import { account, Problem } from "../api";
import {
  kbPageDiff,
  kbPageGet,
  kbPageUpsert,
  type KnowledgePageHunk,
  type KnowledgePage,
  type Repository,
} from "../client.gen";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { of as field, Switch, Text as Entry } from "../ui/inputs";
import { ask } from "../ui/parts";
import { Time } from "../ui/time";
import { Hunks, Text } from "./kb";
import { Actor } from "./who";

// drafts are texts that were not saved, by their pages, as long as the tab has the dashboard.
const drafts = new Map<string, string>();

// titleOf is the first heading, which is the title where none was given.
const titleOf = (body: string) => /^#+ +(.*)$/m.exec(body)?.[1]?.trim() ?? "";
const several = (form: FormData, name: string) =>
  (field(form, name) ?? "")
    .split("\n")
    .map((s) => s.trim())
    .filter(Boolean);

type Met = { now: KnowledgePage | undefined; hunks: KnowledgePageHunk[] };

export function Editor(p: { repo: Repository; of?: KnowledgePage; slug?: string; done: (slug: string) => void }) {
  const [base, setBase] = useState(p.of), // what a save replaces
    [met, setMet] = useState<Met>(), // what somebody else has made of it
    [shown, setShown] = useState<string>(), // the text in the preview
    [begun, begin] = useState(0);
  const name = account.peek() + p.repo.id + "/" + (p.of?.slug ?? ""),
    draft = useRef(drafts.get(name)),
    box = useRef<HTMLDivElement>(null);
  const body = draft.current ?? base?.body ?? "",
    windows = !!base?.body.includes("\r\n"),
    commit = base?.provenance.commit ?? undefined;
  const text = () => box.current!.querySelector<HTMLTextAreaElement>("[name=body]")!.value;
  const read = (f: FormData) => {
    const plain = String(f.get("body") ?? "").replaceAll("\r\n", "\n");
    return {
      repoId: p.repo.id,
      slug: p.of?.slug ?? field(f, "slug") ?? "",
      title: field(f, "title"),
      body: windows ? plain.replaceAll("\n", "\r\n") : plain,
      links: several(f, "links"),
      provenance: { commit: f.has("right") ? undefined : commit, files: several(f, "files") },
      if_version: base?.version ?? 0,
    };
  };
  const meet = async (slug: string) => {
    const input = { repoId: p.repo.id, slug },
      now = await kbPageGet(input).catch(() => undefined),
      diff =
        base && now
          ? await kbPageDiff({ ...input, from: base.version, to: now.version }).catch(() => undefined)
          : undefined;
    setMet({ now, hunks: diff?.hunks ?? [] });
  };
  const start = (of: KnowledgePage | undefined) => {
    drafts.delete(name);
    draft.current = undefined;
    setBase(of);
    setMet(undefined);
    setShown(undefined);
    begin(begun + 1);
  };
  const sent = useRef("");
  return (
    <div ref={box} class="editor">
      {draft.current !== undefined && !met && (
        <p class="hold">
          This is the text that you did not save.{" "}
          <button type="button" onClick={() => start(base)}>
            Begin with the page as it is
          </button>
        </p>
      )}
      {met && (
        <Conflict
          met={met}
          base={base}
          keep={() => {
            setBase(met.now);
            setMet(undefined);
          }}
          take={async () => {
            if (await ask("Throw your text away, and begin with theirs?")) start(met.now);
          }}
        />
      )}
      <Form
        key={begun}
        call={kbPageUpsert}
        read={(f) => {
          const all = read(f);
          sent.current = all.slug;
          return all;
        }}
        submit={p.of ? "Save the page" : "Write the page"}
        said="It is saved."
        keep
        failed={(e) => {
          if (!(e instanceof Problem) || e.slug !== "page-changed") return false;
          void meet(sent.current);
          return true;
        }}
        done={(o) => {
          drafts.delete(name);
          p.done(o.slug);
        }}
      >
        {(wrong) => (
          <>
            {!p.of && (
              <Entry
                name="slug"
                label="Name"
                hint="letters, digits, dots and hyphens; slashes make folders"
                place="guides/build"
                value={p.slug}
                wrong={wrong}
                need
              />
            )}
            <Entry
              name="title"
              label="Title"
              hint="left empty: the first heading"
              value={base && base.title !== titleOf(base.body) ? base.title : ""}
              wrong={wrong}
            />
            <div class="tabs" role="group" aria-label="The text">
              <button type="button" aria-pressed={shown === undefined} onClick={() => setShown(undefined)}>
                Write
              </button>
              <button type="button" aria-pressed={shown !== undefined} onClick={() => setShown(text())}>
                Preview
              </button>
            </div>
            <div hidden={shown !== undefined}>
              <Entry
                name="body"
                label="Text"
                hint="Markdown; [[name]] leads to another page"
                value={body}
                rows={22}
                code
                wrong={wrong}
                onInput={(t) => {
                  drafts.set(name, t);
                }}
              />
            </div>
            {shown !== undefined && (
              <section class="card pv" aria-label="Preview">
                <div class="body pt">
                  {shown.trim() ? (
                    <Text full={p.repo.full_name} slug={p.of?.slug ?? ""} title="" body={shown} />
                  ) : (
                    <p class="dim">There is no text.</p>
                  )}
                </div>
              </section>
            )}
            <Entry
              name="files"
              label="Written from"
              hint="paths of files, one a line; a change of one makes the page stale"
              value={base?.provenance.files.join("\n")}
              rows={3}
              code
              wrong={(f) => wrong("provenance." + f) ?? ofAny(wrong, "provenance.files")}
            />
            <Entry
              name="links"
              label="See also"
              hint="names of pages, one a line, beside the links of the text"
              value={base?.links.join("\n")}
              rows={2}
              code
              wrong={wrong}
            />
            {base?.stale &&
              (commit ? (
                <Switch name="right">The text is right for the files as they are now</Switch>
              ) : (
                <p class="dim">To save it says that the text is right for the files as they are now.</p>
              ))}
          </>
        )}
      </Form>
    </div>
  );
}

const ofAny = (wrong: (f: string) => string[] | undefined, name: string) =>
  Array.from({ length: 20 }, (_, i) => wrong(`${name}.${i}`)).find(Boolean);

// Conflict says what became of the page since it was opened, and what one can do.
function Conflict(p: { met: Met; base: KnowledgePage | undefined; keep: () => void; take: () => void }) {
  const now = p.met.now;
  return (
    <section class="trouble" role="alert" aria-label="The page has changed">
      {now ? (
        <p>
          {p.base ? `Version ${p.base.version}, which you began with, was replaced` : "A page of this name was written"}{" "}
          meanwhile: version {now.version} is by {now.provenance.run_id ? "a run" : <Actor of={now.provenance.by} />},{" "}
          <Time at={now.updated_at} />. Nothing was saved, and your text is still below.
        </p>
      ) : (
        <p>The page was deleted meanwhile. Nothing was saved, and your text is still below.</p>
      )}
      {p.met.hunks.length > 0 && <Hunks of={p.met.hunks} label="What they changed" />}
      {now && !p.base && <p class="raw">{inert(now.body.slice(0, 2000))}</p>}
      <div class="acts">
        {now && (
          <button type="button" onClick={p.take}>
            Begin with theirs
          </button>
        )}
        <button type="button" class="main" onClick={p.keep}>
          {now
            ? `Go on with mine: the next save replaces version ${now.version}`
            : "Go on with mine: the next save writes it anew"}
        </button>
      </div>
    </section>
  );
}
