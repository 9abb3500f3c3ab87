// Home: what waits for me, what runs, what went wrong, what it cost.
import { accountNextSteps, blockerList, escalationList, overviewBurn, overviewCounts, planApprove, planList, prPendingApprovals, taskList, taskRedispatch, taskStalls,
  type Approval, type Blocker, type Escalation, type NextStep, type NextSteps, type Plan, type Task } from "../client.gen";
import { ApprovalCard } from "../cards/approval";
import { BlockerCard } from "../cards/blocker";
import { EscalationCard } from "../cards/escalation";
import { useList, useOne, type List } from "../list";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { many, usd } from "../ui/money";
import { Act, Code, Empty, Head, Loading, Trouble } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Time, Took } from "../ui/time";

const day = 86_400_000;
const running = (t: Task) => t.status === "running" || t.status === "claimed";
const wrong = (t: Task) => t.stuck || t.status === "failed" && !!t.finished_at && Date.now() - Date.parse(t.finished_at) < day;
const none = { data: [], next_cursor: null };

const rowsOf = <R extends { id: string }>(l: List<R>): R[] => l.ids.value.map((id) => l.rows.get(id)!.value);

export default function Home() {
  const approvals = useList<Approval>("a", (_, signal) => may(prPendingApprovals) ? prPendingApprovals({ per_page: 50 }, { signal }) : Promise.resolve(none), { topic: "approvals", fits: (a) => a.state === "pending", drop: true });
  const blockers = useList<Blocker>("b", (_, signal) => may(blockerList) ? blockerList({ open: true, per_page: 50 }, { signal }) : Promise.resolve(none), { topic: "blockers", fits: (b) => b.state === "open", drop: true });
  const escalations = useList<Escalation>("e", (_, signal) => may(escalationList) ? escalationList({ filter: ["state:open"], per_page: 50 }, { signal }) : Promise.resolve(none), { topic: "escalations", fits: (e) => !e.resolved_at, drop: true });
  const plans = useList<Plan>("p", async (_, signal) => may(planList) ? { data: (await planList({ bucket: "held", per_page: 50 }, { signal })).data } : none, { topic: "plans", fits: (p) => p.bucket === "held", drop: true });
  const runs = useList<Task>("r", (_, signal) => taskList({ filter: ["status:running,claimed"], per_page: 50 }, { signal }), { topic: "tasks", fits: running, drop: true });
  const bad = useList<Task>("w", async (_, signal) => {
    const [failed, stuck] = await Promise.all([taskList({ filter: ["status:failed"], per_page: 50 }, { signal }), taskList({ filter: ["stuck:true"], per_page: 50 }, { signal })]);
    return { data: [...stuck.data, ...failed.data].filter(wrong) };
  }, { topic: "tasks", fits: wrong, drop: true });
  const counts = useOne("counts", (signal) => overviewCounts({}, { signal }), { counts: ["tasks", "approvals", "blockers", "escalations", "plans", "prs"] });
  const burn = useOne("burn", (signal) => overviewBurn({}, { signal }), { counts: ["sessions"] });
  const steps = useOne("steps", (signal) => accountNextSteps({}, { signal }));
  const stalls = useOne("stalls", (signal) => taskStalls({ per_page: 20 }, { signal }));
  const waiting = approvals.ids.value.length + blockers.ids.value.length + escalations.ids.value.length + plans.ids.value.length;
  const ready = [approvals, blockers, escalations, plans].every((l) => l.state.value !== "loading");
  const n = counts.value.value;
  const first = steps.value.value?.rungs.some((r) => r.state === "open"); // what one may not see is nobody's step
  return <><Head title="Home" />
    <div class="figures">
      <Figure n={n?.waiting_for_me.total} name={n?.waiting_for_me.total === 1 ? "waits for you" : "wait for you"} href="#waits" />
      <Figure n={n ? n.running_tasks ?? "–" : undefined} name="running" href="/ui/tasks?show=running" />
      <Figure n={n ? n.failed_tasks_24h === null ? "–" : n.failed_tasks_24h + (n.stuck_tasks ?? 0) : undefined} name="went wrong, 24 h" href="/ui/tasks?show=failed" />
      <Figure n={burn.value.value ? usd(burn.value.value.cost_usd) : undefined} name="spent, last hour" href="/ui/usage" />
      <Figure n={n?.merged_prs_24h} name="merged, 24 h" href="/ui/prs?show=merged" /></div>
    {first && <Steps of={steps.value.value!} />}
    <h2 id="waits">Waits for you</h2>
    {[approvals, blockers, escalations, plans].map((l, i) => l.state.value === "failed" && <Trouble key={i} error={new Error(l.error.value)} again={() => void l.load()} />)}
    {!ready ? <Loading /> : waiting === 0 ? <Empty>Nothing waits for you.</Empty> : <ul class="cards">
      {rowsOf(approvals).map((a) => <ApprovalCard key={a.id} of={a} />)}{rowsOf(blockers).map((b) => <BlockerCard key={b.id} of={b} />)}
      {rowsOf(escalations).map((e) => <EscalationCard key={e.id} of={e} />)}{rowsOf(plans).map((p) => <PlanCard key={p.id} of={p} />)}</ul>}
    <h2>Runs now</h2>
    {runs.state.value === "loading" ? <Loading /> : runs.state.value === "failed" ? <Trouble error={new Error(runs.error.value)} again={() => void runs.load()} /> : runs.ids.value.length ? <ul class="cards">{rowsOf(runs).map((t) => <TaskCard key={t.id} of={t}><Took from={t.started_at ?? t.claimed_at} to={null} /> <span class="num">{usd(t.budget.spent)}</span></TaskCard>)}</ul> : <Empty>No box is at work.</Empty>}
    <h2>Went wrong</h2>
    {bad.state.value === "loading" ? <Loading /> : bad.state.value === "failed" ? <Trouble error={new Error(bad.error.value)} again={() => void bad.load()} /> : bad.ids.value.length ? <ul class="cards">{rowsOf(bad).map((t) => <TaskCard key={t.id} of={t}>{t.status === "failed" && <Act call={taskRedispatch} input={{ id: t.id }} done="Queued again.">Try again</Act>}</TaskCard>)}</ul> : <Empty>Nothing, in the last day.</Empty>}
    <h2>Why it waits</h2>
    {!stalls.value.value ? stalls.error.value ? <Trouble error={stalls.error.value} again={() => void stalls.load()} /> : <Loading /> : stalls.value.value.data.length ? <ul class="cards">{stalls.value.value.data.map((s) => <li key={s.reason} class="card"><div><p><strong>{words(s.reason)}</strong> <span class="dim">{many(s.count, "task")}, since <Time at={s.since} /></span></p><p>{s.clears_when}</p></div>
      <div class="acts">{s.task_ids.slice(0, 3).map((id) => <a key={id} href={"/ui/tasks/" + id}><code>{id.slice(0, 8)}</code></a>)}</div></li>)}</ul> : <Empty>Nothing in the queue is held up.</Empty>}
  </>;
}

function Figure(p: { n: number | string | undefined; name: string; href: string }) {
  return <a href={p.href}><b class="num">{p.n ?? "…"}</b>{p.name}</a>;
}

function TaskCard(p: { of: Task; children?: preact.ComponentChildren }) {
  const t = p.of;
  return <li class="card"><div><p><a href={"/ui/tasks/" + t.id}><strong>{inert(t.title)}</strong></a></p>
    <p class="dim">{t.repo} · attempt {t.attempt}{t.failure_kind && <> · {words(t.failure_kind)}</>}{t.stuck && <b class="bad"> · stuck</b>}</p>
    {t.failure && <p>{inert(t.failure)}</p>}</div><div class="acts"><Status of={t.status} />{p.children}</div></li>;
}

function PlanCard(p: { of: Plan }) {
  const x = p.of;
  return <li class="card"><div><p><strong>Plan: <a href={"/ui/plans/" + x.id}>{inert(x.title)}</a></strong></p><p class="dim">{x.repos.join(", ")} · {many(x.total, "pull request")} · approving starts {x.held_count}</p></div>
    <div class="acts"><Act call={planApprove} input={{ planId: x.id }} class="main" done="Approved. It begins.">Approve</Act></div></li>;
}

// places are where a rung is cleared here, and what the button says.
const places: Record<NextStep["rung"], [does: string, href: string]> = {
  may_dispatch: ["See what you may do", "/ui/settings"], capacity: ["See the account", "/ui/settings/account"], repository: ["Add a repository", "/ui/repos"],
  model_key: ["Add the key of a model", "/ui/settings/keys"], box_online: ["Connect a box", "/ui/boxes"],
};

function Steps(p: { of: NextSteps }) {
  return <section aria-labelledby="steps"><h2 id="steps">First steps</h2><ol class="cards">{p.of.rungs.map((r) => {
    const [does, href] = places[r.rung];
    return <li key={r.rung} class="card"><div><p><Status of={r.state === "open" ? "waiting" : r.state} say={r.state} /> <strong>{r.title}</strong></p>
      {r.state === "open" && <Code text={r.command} />}{r.state === "unknown" && <span class="dim">You may not see whether it is so.</span>}</div>{r.state === "open" && <a class="button" href={href}>{does}</a>}</li>;
  })}</ol></section>;
}
