// New work: a task for a repository, or an ask that triage decides on.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { askFile, projectList, taskCreate, type Repository } from "../client.gen";
import { go } from "../route";
import { may } from "../session";
import { Dialog } from "../ui/dialog";
import { Field, Form } from "../ui/form";
import { number } from "../ui/inputs";
import { tell } from "../ui/toast";

const open = signal(false);
export const openNewTask = () => { open.value = true; };

const text = (f: FormData, name: string) => String(f.get(name) ?? "").trim();

export function NewTask() {
  return open.value ? <Body close={() => { open.value = false; }} /> : null;
}

function Body(p: { close: () => void }) {
  const [triage, setTriage] = useState(false), [repos, setRepos] = useState<Repository[] | undefined>(may(projectList) ? undefined : []);
  useEffect(() => { if (may(projectList)) projectList({ per_page: 100 }).then((r) => setRepos(r.next_cursor ? [] : r.data), () => setRepos([])); }, []);
  const fields = (wrong: (f: string) => string[] | undefined) => <>
    <Field label="Title" error={wrong("title")}>{(id, by) => <input id={id} name="title" required autoFocus aria-describedby={by} aria-invalid={!!by} />}</Field>
    <Field label={triage ? "What is asked" : "What to do"} error={wrong(triage ? "body" : "problem")}>{(id, by) => <textarea id={id} name="text" rows={6} required aria-describedby={by} aria-invalid={!!by} />}</Field>
    <Field label="Repository" error={wrong("repo")}>{(id, by) => !repos ? <select id={id} name="repo" disabled><option>Loading…</option></select> : repos.length ? <select id={id} name="repo" aria-describedby={by} aria-invalid={!!by}>{triage && <option value="">Let triage decide</option>}
      {repos.map((r) => <option key={r.id} value={r.full_name}>{r.full_name}</option>)}</select> : <input id={id} name="repo" placeholder="owner/name" aria-describedby={by} aria-invalid={!!by} />}</Field>
    {!triage && <details><summary>More</summary>
      <Field label="Kind" error={wrong("kind")}>{(id) => <select id={id} name="kind"><option value="">work</option><option>scout</option><option>setup</option></select>}</Field>
      <Field label="Priority" hint="0 to 100, higher is first; empty: 50" error={wrong("priority")}>{(id, by) => <input id={id} name="priority" inputMode="numeric" aria-describedby={by} aria-invalid={!!by} />}</Field>
      <Field label="Budget" hint="USD" error={wrong("budget_usd")}>{(id, by) => <input id={id} name="budget" inputMode="decimal" aria-describedby={by} aria-invalid={!!by} />}</Field>
      <Field label="Template" error={wrong("template")}>{(id, by) => <input id={id} name="template" aria-describedby={by} aria-invalid={!!by} />}</Field></details>}</>;
  return <Dialog title={triage ? "New ask" : "New task"} close={p.close} class="wide">
    <label class="check"><input type="checkbox" checked={triage} onChange={(e) => setTriage(e.currentTarget.checked)} /> Let triage decide what becomes of it</label>
    {triage ? <Form key="ask" call={askFile} submit="File the ask" keep read={(f) => ({ title: text(f, "title"), body: text(f, "text"), repo: text(f, "repo") || undefined })}
      done={(o) => { p.close(); tell("Filed."); go("/ui/asks/" + o.askId); }}>{fields}</Form>
      : <Form key="task" call={taskCreate} submit="File the task" keep
        read={(f) => ({ title: text(f, "title"), problem: text(f, "text"), repo: text(f, "repo"), kind: (text(f, "kind") || undefined) as "scout" | undefined,
          priority: number(f, "priority"), budget_usd: number(f, "budget"), template: text(f, "template") || undefined })}
        done={(o) => { p.close(); tell(o.kind === "escalated" ? "It needs a person first: an escalation was made." : o.queue_position ? `Queued, place ${o.queue_position}.` : "Filed."); if (o.task_id) go("/ui/tasks/" + o.task_id); }}>{fields}</Form>}
  </Dialog>;
}
