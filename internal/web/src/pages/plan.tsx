// One plan: its groups as a drawing and as a table, and what a person may do with it.
import { useState } from "preact/hooks";
import { askList, planApprove, planBudgetSet, planCancel, planGet, planRegroup, planUnlink, taskList, type PlanDetail, type PlanGroup } from "../client.gen";
import { useAgain, useList, useOne } from "../list";
import type { PageProps } from "../route";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { Dag } from "../ui/dag";
import { Dialog } from "../ui/dialog";
import { Field, Form } from "../ui/form";
import { number } from "../ui/inputs";
import { Markdown } from "../ui/markdown";
import { Act, Empty, Fact, Facts, Head, Id, Loading, Trouble } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Mark, Status, toneOf, words } from "../ui/status";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";
import { Part } from "./plans";

const merged = (g: PlanGroup) => g.tasks.filter((t) => t.status === "merged" || t.status === "completed").length;
const over = (p: PlanDetail) => ["done", "failed", "cancelled"].includes(p.status);

export default function PlanPage(p: PageProps) {
  const id = p.params.id!, [dialog, setDialog] = useState<"" | "regroup" | PlanGroup>("");
  const one = useOne<PlanDetail>(id, (signal) => planGet({ planId: id }, { signal }));
  const again = () => void one.load();
  const x = one.value.value;
  useAgain("plans", id, again);
  useAgain("tasks", (t) => !!x?.groups.some((g) => g.tasks.some((k) => k.id === t.id)), again);
  if (!x) return <><Head title="Plan" />{one.error.value ? <Trouble error={one.error.value} again={again} /> : <Loading />}</>;
  const title = new Map(x.groups.map((g) => [g.id, g.title])), held = x.bucket === "held", live = x.groups.filter((g) => g.status !== "superseded");
  const open = (g: string) => { const row = document.getElementById("g-" + g); row?.scrollIntoView({ block: "nearest" }); row?.querySelector<HTMLElement>("a,button")?.focus(); };
  return <><Head title={inert(x.title)}><Status of={x.bucket} /><span class="grow" />
    {held && <Act call={planApprove} input={{ planId: id }} class="main" done={(o) => { again(); return o.kind === "approved" ? `Approved. ${o.task_ids.length} ${o.task_ids.length === 1 ? "task begins" : "tasks begin"}.` : "It was approved already."; }}>Approve</Act>}
    {!over(x) && <button type="button" disabled={!may(planRegroup)} onClick={() => setDialog("regroup")}>Regroup</button>}
    {!over(x) && <Act call={planCancel} input={{ planId: id }} confirm="Cancel the plan, and every task of it that is not over?" done={(o) => { again(); return `Cancelled. ${o.stopped.length} stopped, ${o.already_finished.length} were over${o.reviews_not_stopped.length ? `, ${o.reviews_not_stopped.length} reviews go on` : ""}.`; }}>Cancel</Act>}</Head>
    <Facts><Fact name="Merged"><Part merged={x.merged} total={x.total} /></Fact><Fact name="Repositories">{x.repos.map((r) => <a key={r} href={"/ui/repos/" + r}>{r} </a>)}</Fact><Fact name="State">{words(x.status)}</Fact>
      <Fact name="Revision">{x.revision}</Fact>{x.dir && <Fact name="Directory"><code>{inert(x.dir)}</code>{x.commit_sha && <small> at {x.commit_sha.slice(0, 10)}</small>}</Fact>}
      {x.ask_id && <Fact name="Ask"><a href={"/ui/asks/" + x.ask_id}>open</a></Fact>}{x.scout_task_id && <Fact name="Drafted by"><a href={"/ui/tasks/" + x.scout_task_id}>a scout</a></Fact>}
      <Fact name="Last activity"><Time at={x.last_activity_at} /></Fact><Fact name="Id"><Id of={x.id} /></Fact></Facts>
    {x.note && <p class="trouble">{inert(x.note)}</p>}
    {held && <p class="hold">It waits for approval. Approving starts {x.held_count} {x.held_count === 1 ? "task" : "tasks"}; those that wait for others begin when these are done.</p>}
    <h2>What waits for what</h2>
    {live.length === 0 ? <Empty>It has no groups yet.</Empty> : <><Dag label="Groups of the plan" open={open} nodes={live.map((g) => ({ id: g.id, label: `${g.title}, ${g.status}`, up: g.upstream.map((u) => ({ id: u.group_id, kind: u.kind === "code" ? "code" as const : "order" as const })) }))}
      draw={(gid) => { const g = x.groups.find((k) => k.id === gid)!; const tone = toneOf(g.status); return <><b>{inert(g.title)}</b><span class={"status " + tone}><Mark tone={tone} />{words(g.status)}</span> <span class="dim">{merged(g)} of {g.tasks.length} · {g.repo}</span></>; }} />
      <p class="dim"><small>Solid: it needs the code. Dashed: only the order.</small></p></>}
    {x.groups.length > 0 && <div class="scroll" tabIndex={0} role="region" aria-label="Groups"><table class="full stack"><thead><tr><th>Group</th><th>State</th><th>Waits for</th><th>Tasks</th><td /></tr></thead><tbody>{x.groups.map((g) => <tr key={g.id} id={"g-" + g.id}>
      <td>{inert(g.title)}<br /><small>{g.repo} · {inert(g.slug)}</small></td><td><Status of={g.status} /></td>
      <td data-name="Waits for" class={g.upstream.length ? undefined : "none"}>{g.upstream.length === 0 ? "–" : g.upstream.map((u) => <div key={u.group_id}><a href={"#g-" + u.group_id}>{inert(title.get(u.group_id) ?? u.group_id.slice(0, 8))}</a>{u.kind !== "code" && <small> order only</small>}</div>)}</td>
      <td class={g.tasks.length ? undefined : "none"}>{g.tasks.length === 0 ? "–" : g.tasks.map((t) => <div key={t.id}><Status of={t.status} /> <a href={"/ui/tasks/" + t.id}>{inert(t.title)}</a>{t.pr && <> · <a href={"/ui/prs/" + t.pr.id}>#{t.pr.number} {words(t.pr.state)}</a></>}{t.failure_kind && <small> {words(t.failure_kind)}</small>}</div>)}</td>
      <td>{g.upstream.some((u) => u.kind === "ordering_only") && !over(x) && <button type="button" disabled={!may(planUnlink)} onClick={() => setDialog(g)}>Unlink</button>}</td></tr>)}</tbody></table></div>}
    {!over(x) && <><h2>Budget</h2><Form call={planBudgetSet} submit="Set the cap" said="Set." keep read={(f) => ({ planId: id, usd: number(f, "usd") ?? null })}>
      {(wrong) => <Field label="Cap of the plan" hint="USD, for all its tasks; empty for none" error={wrong("usd")}>{(fid, by) => <input id={fid} name="usd" inputMode="decimal" defaultValue={x.budget_usd === null ? "" : String(x.budget_usd)} aria-describedby={by} aria-invalid={!!by} />}</Field>}</Form></>}
    {x.overview && <><h2>Overview</h2><figure class="agent"><figcaption>{x.source === "file" || x.source === "execute" ? "From the documents of the plan" : "Written by a program"}</figcaption><Markdown text={x.overview} /></figure></>}
    <Raw call={planGet} input={{ planId: id }} of={x} />
    {dialog === "regroup" ? <Regroup of={x} close={() => setDialog("")} done={again} /> : dialog ? <Unlink of={x} group={dialog} close={() => setDialog("")} done={again} /> : null}</>;
}

// Unlink removes edges that only keep an order, and shows what is left before it does.
function Unlink(p: { of: PlanDetail; group: PlanGroup; close: () => void; done: () => void }) {
  const g = p.group, [out, setOut] = useState<string[]>([]), name = (id: string) => inert(p.of.groups.find((x) => x.id === id)?.title ?? id.slice(0, 8));
  const left = g.upstream.filter((u) => !out.includes(u.group_id));
  return <Dialog title={"Unlink " + inert(g.title)} class="wide" close={p.close}>
    <Form call={planUnlink} submit="Remove" done={(o) => { p.close(); p.done(); tell(`Removed. It waits for ${o.after.length}${o.revived.length ? `, and ${o.revived.length} tasks are queued again` : ""}.`); }}
      read={(f) => ({ planId: p.of.id, group_id: g.id, upstream_group_ids: out, reason: String(f.get("reason") ?? "") })}>
      {(wrong) => <><fieldset><legend>It shall not wait any more for</legend>{g.upstream.map((u) => <label key={u.group_id} class="check"><input type="checkbox" disabled={u.kind === "code"} checked={out.includes(u.group_id)}
        onChange={(e) => setOut(e.currentTarget.checked ? [...out, u.group_id] : out.filter((x) => x !== u.group_id))} /> {name(u.group_id)}{u.kind === "code" && <small> it needs its code</small>}</label>)}
        {wrong("upstream_group_ids") && <em>{wrong("upstream_group_ids")!.join(", ")}</em>}</fieldset>
        <p class="dim">Before: {g.upstream.map((u) => name(u.group_id)).join(", ")}. After: {left.map((u) => name(u.group_id)).join(", ") || "it waits for nothing"}.</p>
        <Field label="Reason" hint="is kept with the change" error={wrong("reason")}>{(id, by) => <input id={id} name="reason" aria-describedby={by} aria-invalid={!!by} />}</Field></>}</Form></Dialog>;
}

// Regroup puts other tasks, or those of an ask, in the place of groups.
function Regroup(p: { of: PlanDetail; close: () => void; done: () => void }) {
  const x = p.of, own = new Set(x.groups.flatMap((g) => g.tasks.map((t) => t.id))), [q, setQ] = useState("");
  const tasks = useList("tasks" + q, (cursor, signal) => taskList({ cursor, per_page: 30, q: q || undefined }, { signal }));
  const asks = useList("asks", (cursor, signal) => askList({ cursor, per_page: 30, filter: ["state:triaged"] }, { signal }));
  return <Dialog title="Put tasks in the place of groups" class="wide" close={p.close}>
    <Form call={planRegroup} submit="Regroup" done={(o) => { p.close(); p.done(); tell(`${o.superseded_groups.length} groups were replaced by ${o.groups.length}.`); }}
      read={(f) => ({ planId: x.id, group_ids: f.getAll("group").map(String), ask_id: String(f.get("ask") ?? "") || undefined, task_ids: f.getAll("task").length ? f.getAll("task").map(String) : undefined })}>
      {(wrong) => <><fieldset><legend>Groups that are replaced</legend>{x.groups.filter((g) => !["done", "stopped", "superseded"].includes(g.status)).map((g) => <label key={g.id} class="check"><input type="checkbox" name="group" value={g.id} /> {inert(g.title)} <small>{words(g.status)}</small></label>)}
        {wrong("group_ids") && <em>{wrong("group_ids")!.join(", ")}</em>}</fieldset>
        <Field label="By the tasks of an ask" error={wrong("ask_id")}>{(id, by) => <select id={id} name="ask" aria-describedby={by} aria-invalid={!!by}><option value="">none</option>{asks.ids.value.map((a) => <option key={a} value={a}>{inert(asks.rows.get(a)!.value.title)}</option>)}</select>}</Field>
        <fieldset><legend>Or by these tasks</legend><input type="search" aria-label="Find tasks" placeholder="Find tasks" onInput={(e) => setQ(e.currentTarget.value)} />
          {tasks.ids.value.filter((t) => !own.has(t)).map((t) => { const r = tasks.rows.get(t)!.value; return <label key={t} class="check"><input type="checkbox" name="task" value={t} /> {inert(r.title)} <small>{r.repo}, {words(r.status)}</small></label>; })}
          {wrong("task_ids") && <em>{wrong("task_ids")!.join(", ")}</em>}</fieldset></>}</Form></Dialog>;
}
