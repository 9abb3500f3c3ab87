// A page of the knowledge base: read, edited, and what it was before.
import { Problem } from "../api";
import {
  kbPageDelete,
  kbPageGet,
  kbPageUpsert,
  type KnowledgeKeeper,
  type KnowledgePage,
  type Repository,
} from "../client.gen";
import { Outdated, placeOf, Text, useRepository } from "../cards/kb";
import { Editor } from "../cards/kbedit";
import { hrefOfFile, Source } from "../cards/source";
import { Actor } from "../cards/who";
import { useOne } from "../list";
import { go, query, setQuery, type PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Act, Coming, Empty, Head, Id, Tabs } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Status } from "../ui/status";
import { Time } from "../ui/time";
import { History } from "../cards/kbhistory";

const tabs = ["text", "edit", "history"];

export default function PageOfKnowledge(p: PageProps) {
  const at = { owner: p.params.owner!, repo: p.params.repo! },
    slug = p.params.slug!,
    one = useRepository(at),
    r = one.value.value;
  return r ? (
    <One key={r.id + slug} repo={r} slug={slug} />
  ) : (
    <>
      <Head title={inert(slug)} />
      <Coming of={one} />
    </>
  );
}

function One(p: { repo: Repository; slug: string }) {
  const input = { repoId: p.repo.id, slug: p.slug },
    full = p.repo.full_name,
    tab = query().get("tab") ?? "text",
    one = useOne<KnowledgePage>(p.slug, (signal) => kbPageGet(input, { signal })),
    d = one.value.value,
    failure = one.error.value;
  if (!d)
    return (
      <>
        <Head title={inert(p.slug)}>
          <span class="grow" />
          <a href={placeOf(full)}>All pages</a>
        </Head>
        {failure instanceof Problem && failure.status === 404 ? (
          <Empty>
            There is no page of this name. <a href={placeOf(full) + "?new=" + encodeURIComponent(p.slug)}>Write it</a>
          </Empty>
        ) : (
          <Coming of={one} />
        )}
      </>
    );
  const again = () => void one.load();
  return (
    <>
      <Head title={inert(d.title)}>
        {d.stale && <Status of="stale" />}
        <Tabs
          label="Parts of the page"
          all={tabs}
          at={tab}
          to={(t) => setQuery({ tab: t === "text" ? "" : t, from: "", to: "" })}
        />
        <span class="grow" />
        <a href={placeOf(full)}>All pages</a>
        <Act
          call={kbPageDelete}
          input={input}
          class="danger"
          confirm={`Delete the page ${d.slug} with all its versions?`}
          done={() => {
            go(placeOf(full));
            return "It is deleted.";
          }}
        >
          Delete
        </Act>
      </Head>
      {tab === "edit" ? (
        <Editor
          repo={p.repo}
          of={d}
          done={() => {
            again();
            setQuery({ tab: "" });
          }}
        />
      ) : tab === "history" ? (
        <History key={d.version} repo={p.repo} of={d} again={again} />
      ) : (
        <Read repo={p.repo} of={d} again={again} />
      )}
    </>
  );
}

// Kept names the work that is due about a stale page.
const Kept = (p: { of: KnowledgeKeeper }) => (
  <>
    {p.of.task_id && (
      <>
        <a href={"/ui/tasks/" + p.of.task_id}>The newest task that keeps pages</a>.{" "}
      </>
    )}
    The next one is filed <Time at={p.of.next_at} /> at the earliest.
  </>
);

// Read is the text, and beside it what one judges it by.
function Read(p: { repo: Repository; of: KnowledgePage; again: () => void }) {
  const d = p.of,
    full = p.repo.full_name,
    from = d.provenance;
  return (
    <div class="cols">
      <div>
        {d.stale && (
          <>
            <Outdated repo={p.repo} of={d.stale} />
            <p class="dim">
              {d.keeper ? <Kept of={d.keeper} /> : "No task about it is due before the default branch moves again."}
            </p>
            <Act
              call={kbPageUpsert}
              input={{
                repoId: p.repo.id,
                slug: d.slug,
                title: d.title,
                body: d.body,
                links: d.links,
                provenance: { commit: d.stale.commit, files: from.files },
                if_version: d.version,
              }}
              done={() => {
                p.again();
                return "It is current again, as of that commit.";
              }}
            >
              The page still holds
            </Act>
          </>
        )}
        <Text
          full={full}
          slug={d.slug}
          title={d.title}
          body={d.body}
          there={d.leads_to}
          files={{ all: from.files, href: (path, line, last) => hrefOfFile(p.repo, from.commit, path, line, last) }}
        />
        <Raw call={kbPageGet} input={{ repoId: p.repo.id, slug: d.slug }} of={d} />
      </div>
      <aside class="stack" aria-label="About the page">
        <section class="card">
          <header>
            <h2>Where it is from</h2>
          </header>
          <dl class="kv body">
            <dt>Written by</dt>
            <dd>{from.run_id ? <a href={"/ui/runs/" + from.run_id}>a run</a> : <Actor of={from.by} />}</dd>
            <dt>Written</dt>
            <dd>
              <Time at={d.updated_at} />
            </dd>
            <dt>Version</dt>
            <dd>
              <a href="?tab=history">{d.version}</a>
            </dd>
            <dt>Name</dt>
            <dd>
              <code>{d.slug}</code>
            </dd>
            <dt>Commit</dt>
            <dd>{from.commit ? <Id of={from.commit} /> : "nobody said"}</dd>
            <dt>Files</dt>
            <dd>
              {from.files.length === 0
                ? "none: it never gets stale"
                : from.files.map((f) => (
                    <div key={f}>
                      <Source name={f} href={hrefOfFile(p.repo, from.commit, f)} />
                    </div>
                  ))}
            </dd>
          </dl>
        </section>
        <Ways name="Leads to" none="It leads to no other page." full={full} all={d.leads_to} />
        <Ways name="Linked from" none="No page leads here." full={full} all={d.linked_from} />
        {d.unresolved.length > 0 && (
          <section class="card">
            <header>
              <h2>Leads nowhere</h2>
            </header>
            <div class="body">
              <p>These pages were deleted since:</p>
              <ul>
                {d.unresolved.map((s) => (
                  <li key={s}>
                    <code>{inert(s)}</code>
                  </li>
                ))}
              </ul>
            </div>
          </section>
        )}
      </aside>
    </div>
  );
}

function Ways(p: { name: string; none: string; full: string; all: string[] }) {
  return (
    <section class="card" aria-label={p.name}>
      <header>
        <h2>{p.name}</h2>
        <span class="num">{p.all.length || ""}</span>
      </header>
      <div class="body">
        {p.all.length === 0 ? (
          <p class="dim">{p.none}</p>
        ) : (
          <ul>
            {p.all.map((s) => (
              <li key={s}>
                <a href={placeOf(p.full, s)}>{s}</a>
              </li>
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}
