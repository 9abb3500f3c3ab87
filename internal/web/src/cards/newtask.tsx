// New work: a task for a repository, or an ask that triage decides on. What was typed and
// not sent is kept in this browser, by account.
import { useEffect, useRef, useState } from "preact/hooks";
import { account } from "../api";
import { askFile, projectList, taskCreate, templateList, type Repository } from "../client.gen";
import { go } from "../route";
import { may, me } from "../session";
import { Dialog } from "../ui/dialog";
import { Field, Form } from "../ui/form";
import { Choice, number, of, Text } from "../ui/inputs";
import { tell } from "../ui/toast";
import { repos as everyRepo, whole } from "../whole";

type Draft = Record<string, string>;
type Wrong = (field: string) => string[] | undefined;

const place = () => "draft:" + (account.value || me.value?.account.id) + ":work";

function draft(): Draft {
  try {
    return JSON.parse(localStorage.getItem(place()) ?? "{}") as Draft;
  } catch {
    return {};
  }
}

// keep stores what stands in a form, or forgets it where nothing does.
function keep(form: HTMLFormElement, triage: boolean) {
  const all: Draft = triage ? { triage: "yes" } : {};
  for (const [k, v] of new FormData(form)) if (typeof v === "string" && v) all[k] = v;
  const had = draft()["repo"];
  if (had && form.querySelector("select[name=repo]:disabled")) all["repo"] = had; // the list is to come
  if (all["title"] || all["text"]) localStorage.setItem(place(), JSON.stringify(all));
  else localStorage.removeItem(place());
}

// titled is the title of a form: the first line of its text, where none is given.
function titled(f: FormData): string {
  const line = [
    ...(of(f, "text") ?? "")
      .trimStart()
      .split("\n", 1)[0]!
      .replace(/^#+\s+/, ""),
  ];
  return of(f, "title") ?? (line.length <= longest ? line : [...line.slice(0, longest - 1), "…"]).join("").trim();
}
const longest = 120;

export function NewWork(p: { close: () => void }) {
  const [had, setHad] = useState(draft),
    [triage, setTriage] = useState(!!had["triage"]),
    [turn, setTurn] = useState(0),
    alive = useRef(true), // while nobody has closed it
    sent = useRef({ at: "", draft: null as string | null }); // as it was sent
  useEffect(
    () => () => {
      alive.current = false;
    },
    [],
  );
  const send = () => {
    sent.current = { at: place(), draft: localStorage.getItem(place()) };
  };
  const filed = (text: string, to?: string) => {
    const { at, draft } = sent.current;
    if (localStorage.getItem(at) === draft) localStorage.removeItem(at);
    tell(text);
    if (!alive.current) return; // they do something else by now
    p.close();
    if (to) go(to);
  };
  const shared = {
    keep: true,
    children: (wrong: Wrong) => <Fields triage={triage} wrong={wrong} draft={had} close={p.close} />,
    also: Object.keys(had).length > 0 && (
      <button
        type="button"
        onClick={() => {
          localStorage.removeItem(place());
          setHad({});
          setTurn(turn + 1);
        }}
      >
        Start over
      </button>
    ),
  };
  return (
    <Dialog title={triage ? "New ask" : "New task"} close={p.close} class="wide">
      <div
        key={turn}
        onSubmitCapture={(e) => {
          if (!(e.target as Element).querySelector("[aria-busy=true]")) send();
        }}
        onInput={(e) => {
          const form = (e.target as Element).closest("form");
          if (form) keep(form, triage);
        }}
      >
        <label class="check">
          <input
            type="checkbox"
            checked={triage}
            onChange={(e) => {
              const form = e.currentTarget.closest("dialog")!.querySelector("form")!;
              keep(form, e.currentTarget.checked);
              setHad(draft());
              setTriage(e.currentTarget.checked);
            }}
          />{" "}
          Let triage decide what becomes of it
        </label>
        {triage ? (
          <Form
            key="ask"
            call={askFile}
            submit="File the ask"
            read={(f) => ({ title: titled(f), body: of(f, "text") ?? "", repo: of(f, "repo") })}
            done={(o) => filed("Filed.", "/ui/asks/" + o.askId)}
            {...shared}
          />
        ) : (
          <Form
            key="task"
            call={taskCreate}
            submit="File the task"
            read={(f) => ({
              title: titled(f),
              problem: of(f, "text") ?? "",
              repo: of(f, "repo") ?? "",
              kind: of(f, "kind") as "scout" | undefined,
              priority: number(f, "priority"),
              budget_usd: number(f, "budget"),
              template: of(f, "template"),
            })}
            done={(o) =>
              filed(
                o.kind === "escalated" ? "It needs a person first: an escalation was made." : "Filed.",
                o.task_id ? "/ui/tasks/" + o.task_id : undefined,
              )
            }
            {...shared}
          />
        )}
      </div>
    </Dialog>
  );
}

function Fields(p: { triage: boolean; wrong: Wrong; draft: Draft; close: () => void }) {
  const { triage, wrong } = p,
    had = (name: string) => p.draft[name] ?? "";
  const [repos, setRepos] = useState<Repository[] | "many" | undefined>(may(projectList) ? undefined : "many"),
    [templates, setTemplates] = useState<string[]>([]);
  useEffect(() => {
    if (may(projectList))
      everyRepo().then(
        (r) => setRepos(r.next_cursor ? "many" : r.data),
        () => setRepos("many"),
      );
    if (may(templateList))
      whole((cursor) => templateList({ cursor, per_page: 100 })).then(
        (r) => setTemplates(r.data.map((t) => t.name)),
        () => undefined,
      );
  }, []);
  const repo = { name: "repo", label: "Repository", wrong };
  return (
    <>
      <Text
        name="text"
        field={triage ? "body" : "problem"}
        label={triage ? "What is asked" : "What to do"}
        hint="Ctrl Enter sends it"
        wrong={wrong}
        value={had("text")}
        rows={6}
        need
        focus
      />
      <Text name="title" label="Title" hint="empty: the first line of the text" wrong={wrong} value={had("title")} />
      {repos === "many" ? (
        <Text {...repo} value={had("repo")} place="owner/name" />
      ) : repos?.length ? (
        <Choice
          {...repo}
          value={had("repo")}
          all={[
            ...(triage ? [["", "Let triage decide"] as const] : []),
            ...repos.map((r) => [r.full_name, r.full_name] as const),
          ]}
        />
      ) : (
        <Field label={repo.label} error={wrong(repo.name)}>
          {(id) =>
            repos ? (
              <p id={id}>
                There is no repository yet.{" "}
                <a href="/ui/repos?add=1" onClick={p.close}>
                  Add one
                </a>
                ; what you have typed is kept.
              </p>
            ) : (
              <select id={id} name="repo" disabled>
                <option>Loading…</option>
              </select>
            )
          }
        </Field>
      )}
      {!triage && (
        <details open={["kind", "priority", "budget", "template"].some((k) => had(k) || wrong(k) || wrong(k + "_usd"))}>
          <summary>More</summary>
          <Choice
            name="kind"
            label="Kind"
            wrong={wrong}
            value={had("kind")}
            all={[["", "work"], "scout", "setup", "devops"]}
          />
          <Text
            name="priority"
            label="Priority"
            hint="0 to 100, higher is first; empty: 50"
            wrong={wrong}
            value={had("priority")}
            decimal
          />
          <Text
            name="budget"
            field="budget_usd"
            label="Budget"
            hint="USD"
            wrong={wrong}
            value={had("budget")}
            decimal
          />
          <Text name="template" label="Template" wrong={wrong} value={had("template")} among={templates} />
        </details>
      )}
    </>
  );
}
