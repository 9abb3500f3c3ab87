// One task: what it is, why it waits, what its agent does, what came of it.
import { useEffect, useMemo, useState } from "preact/hooks";
import { askGet, boxGet, prGet, sessionMessage, taskAttempts, taskBudgetSet, taskCancel, taskReassign, taskRedispatch, taskResult, taskRunStatus, taskRunTail, type Run, type TaskDetail } from "../client.gen";
import { Hold } from "../cards/hold";
import { Named } from "../cards/named";
import { useList, useOne } from "../list";
import { query, setQuery, type PageProps } from "../route";
import { follow, type Frame, type Link } from "../sse";
import { inert } from "../ui/ansi";
import { Field, Form } from "../ui/form";
import { number } from "../ui/inputs";
import { Log } from "../ui/log";
import { Markdown } from "../ui/markdown";
import { many, usd } from "../ui/money";
import { Act, Empty, Fact, Facts, Head, Id, Loading, Meter, Tabs, Trouble } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Table } from "../ui/table";
import { Time, Took } from "../ui/time";
import { Transcript } from "../ui/transcript";

const over = ["completed", "merged", "cancelled", "failed"];

export default function TaskPage(p: PageProps) {
  const id = p.params.id!;
  const one = useOne<TaskDetail>(id, (signal) => taskRunStatus({ id }, { signal }), { topic: "tasks", id, changed: (was, row) => was.run_id !== row.run_id || was.status !== row.status });
  const t = one.value.value, tab = query().get("tab") ?? "run";
  if (!t) return one.error.value ? <><Head title="Task" /><Trouble error={one.error.value} again={() => void one.load()} /></> : <><Head title="Task" /><Loading /></>;
  const done = over.includes(t.status);
  return <div class={tab === "run" ? "fill" : undefined}>
    <Head title={inert(t.title)}><Status of={t.status} />{t.stuck && <b class="bad">stuck</b>}<span class="grow" />
      {!done && <Act call={taskReassign} input={{ id }} confirm="Take the task from its box and queue it again?" done="Queued again.">Reassign</Act>}
      {!done && <Act call={taskCancel} input={{ id }} confirm="Cancel the task? Tasks that depend on it fail." done={(o) => o.kind === "cancelled" ? "Cancelled." : "It was over already."}>Cancel</Act>}</Head>
    <Facts>
      <Fact name="Repository"><a href={"/ui/repos/" + t.repo}>{t.repo}</a></Fact><Fact name="Branch"><code>{t.branch}</code></Fact>
      <Fact name="Attempt">{t.attempt} of {t.max_attempts}</Fact><Fact name="Kind">{t.kind}</Fact>
      <Fact name="Cost">{t.budget.usd !== null ? <Meter value={Number(t.budget.spent ?? 0)} max={Number(t.budget.usd)} label={`${usd(t.budget.spent)} of ${usd(t.budget.usd)}`} /> : usd(t.budget.spent)}</Fact>
      {t.queue_position !== null && <Fact name="Queue">place {t.queue_position} of {t.queue_depth}</Fact>}
      {t.box_id && <Fact name="Box"><Named id={t.box_id} href={"/ui/boxes/" + t.box_id} get={boxGet} read={(signal) => boxGet({ id: t.box_id! }, { signal })} name={(b) => b.name} /></Fact>}
      {t.plan && <Fact name="Plan"><a href={"/ui/plans/" + t.plan.id}>{inert(t.plan.title)}</a></Fact>}
      {t.pr_id && <Fact name="Pull request"><Named id={t.pr_id} href={"/ui/prs/" + t.pr_id} get={prGet} read={(signal) => prGet({ id: t.pr_id! }, { signal })} name={(x) => x.number ? "#" + x.number : words(x.state)} /></Fact>}
      {t.ask_id && <Fact name="Ask"><Named id={t.ask_id} href={"/ui/asks/" + t.ask_id} get={askGet} read={(signal) => askGet({ askId: t.ask_id! }, { signal })} name={(x) => x.title} /></Fact>}
      <Fact name="Filed"><Time at={t.created_at} /></Fact><Fact name="Id"><Id of={t.id} /></Fact></Facts>
    {t.holds.map((h) => <Hold key={h.reason} of={h} />)}
    {t.failure && <p class="trouble"><strong>{words(t.failure_kind ?? "failed")}</strong> {inert(t.failure)}</p>}
    <Tabs label="Parts of the task" all={["run", "report", "task", "attempts", "raw"]} at={tab} to={(s) => setQuery({ tab: s === "run" ? "" : s })} />
    {tab === "report" ? <Report id={id} /> : tab === "task" ? <What of={t} /> : tab === "attempts" ? <Attempts id={id} /> : tab === "raw" ? <pre class="raw" tabIndex={0}>{inert(JSON.stringify(t, null, 2))}</pre>
      : t.run_id ? <RunLog key={t.run_id} run={t.run_id} live={t.run?.state === "live"} /> : <Empty>No box has it yet.{t.queue_position !== null && ` It is at place ${t.queue_position} of the queue.`}</Empty>}
  </div>;
}

function What(p: { of: TaskDetail }) {
  const t = p.of;
  return <><h2>What to do</h2><Markdown text={t.problem} />
    {t.guidance && <><h2>Guidance</h2><Markdown text={t.guidance} /></>}
    {t.files.length > 0 && <><h2>Files</h2><ul>{t.files.map((f) => <li key={f}><code>{inert(f)}</code></li>)}</ul></>}
    {t.depends_on.length > 0 && <><h2>Depends on</h2><ul>{t.depends_on.map((d) => <li key={d}><a href={"/ui/tasks/" + d}><code>{d.slice(0, 8)}</code></a></li>)}</ul></>}
    {t.plan && (t.plan.upstream.length > 0 || t.plan.downstream.length > 0) && <><h2>Holds up</h2><ul>{t.plan.downstream.map((d) => <li key={d}><a href={"/ui/tasks/" + d}><code>{d.slice(0, 8)}</code></a></li>)}</ul></>}
    <h2>Try again</h2><Form call={taskRedispatch} submit="Queue it again" said="Queued again." read={(f) => ({ id: t.id, guidance: String(f.get("guidance") ?? "") || undefined })}>
      {(wrong) => <Field label="Guidance" hint="what the next attempt should know" error={wrong("guidance")}>{(id, by) => <textarea id={id} name="guidance" rows={3} aria-describedby={by} aria-invalid={!!by} />}</Field>}</Form>
    <h2>Budget</h2><Form call={taskBudgetSet} submit="Set the cap" said="Set." keep read={(f) => ({ id: t.id, usd: number(f, "usd") ?? null })}>
      {(wrong) => <Field label="Cap" hint="USD; empty for none" error={wrong("usd")}>{(id, by) => <input id={id} name="usd" inputMode="decimal" defaultValue={t.budget.usd ?? ""} aria-describedby={by} aria-invalid={!!by} />}</Field>}</Form></>;
}

function Report(p: { id: string }) {
  const one = useOne(p.id + "report", (signal) => taskResult({ id: p.id }, { signal }), { topic: "tasks", id: p.id, changed: (was, row) => was.status !== row.status });
  const r = one.value.value;
  if (!r) return one.error.value ? <Trouble error={one.error.value} /> : <Loading />;
  return <>{r.report ? <figure class="agent"><figcaption>Written by a program</figcaption><Markdown text={r.report} /></figure> : <Empty>{r.report_missing ? "The run ended without a report." : "There is no report yet."}</Empty>}
    {r.ask_ids.length > 0 && <p>Asks it filed: {r.ask_ids.map((a) => <a key={a} href={"/ui/asks/" + a}><code>{a.slice(0, 8)}</code> </a>)}</p>}
    {r.result !== null && <pre class="raw" tabIndex={0}>{inert(JSON.stringify(r.result, null, 2))}</pre>}</>;
}

function Attempts(p: { id: string }) {
  const list = useList<Run>(p.id + "attempts", (cursor, signal) => taskAttempts({ id: p.id, cursor, per_page: 50 }, { signal }));
  return <div class="boxed"><Table list={list} id="attempts" label="Attempts" widths="80px 130px minmax(0,1fr) 120px 100px 100px" empty="No box has had it."
    columns={[{ name: "Attempt", class: "num", cell: (r) => r.attempt }, { name: "State", cell: (r) => <Status of={r.outcome ?? r.state} noun="run" /> },
      { name: "Why", cell: (r) => r.failure_kind ? words(r.failure_kind) : r.ended_reason ? inert(r.ended_reason) : "" }, { name: "Agent", class: "dim less", cell: (r) => [r.agent, r.model].filter(Boolean).join(" ") },
      { name: "Took", class: "num", cell: (r) => <Took from={r.started_at} to={r.ended_at} /> }, { name: "Begun", class: "dim end", cell: (r) => <Time at={r.started_at} suffix={false} /> }]} /></div>;
}

// RunLog is the transcript of a run, as it comes.
function RunLog(p: { run: string; live: boolean }) {
  const lines = useMemo(() => new Transcript(), [p.run]);
  const [state, setState] = useState<Link>("retrying"), [why, setWhy] = useState("");
  useEffect(() => {
    let off: AbortController | undefined, hidden = 0;
    const on = (batch: Frame[]) => { for (const f of batch) if (f.event === "event") lines.event(JSON.parse(f.data)); };
    let last = false;
    const read = () => {
      if (off || last) return;
      off = new AbortController();
      lines.clear();
      lines.steps = [];
      void follow(taskRunTail({ runId: p.run }), on, off.signal, { resume: true, ended: (b) => (last ||= b.some((f) => f.event === "end")), state: (s, w) => { setState(s); if (w) setWhy(w); } });
    };
    const see = () => { // a tab that is hidden for long reads no more
      clearTimeout(hidden);
      if (document.hidden) hidden = window.setTimeout(() => { off?.abort(); off = undefined; setState("paused"); }, 30_000); else read();
    };
    read();
    document.addEventListener("visibilitychange", see);
    return () => { document.removeEventListener("visibilitychange", see); clearTimeout(hidden); off?.abort(); };
  }, [p.run]);
  void lines.version.value;
  return <section class="fill run" aria-label="Transcript">
    <p class="dim"><span class={"link " + state}>{state === "ended" ? "The run is over." : state === "live" ? "Live" : words(state)}</span> {why} {state === "live" && lines.now && <span>· {inert(lines.now)}</span>}</p>
    {lines.steps.length > 0 && <details class="outline"><summary>{many(lines.steps.length, "step")}</summary><ol>{lines.steps.map((s, i) => <li key={i}><a href={"#L" + (s.line + 1)} onClick={(e) => { e.preventDefault(); const el = document.getElementById("transcript"); if (el) el.scrollTop = s.line * 20; }}>{inert(s.title)}</a></li>)}</ol></details>}
    <Log lines={lines} id="transcript" label="Transcript of the run" tail={state !== "ended"} />
    {p.live && <Message run={p.run} />}</section>;
}

const fates: Record<string, string> = { replied: "It answered.", queued: "Held for its next turn.", read: "It has read it.", unconfirmed: "Its box has not confirmed it yet.", dropped: "The run ended before it could read it." };

function Message(p: { run: string }) {
  const [fate, setFate] = useState<{ status: string; reply: string | null; note: string | null }>();
  return <div><Form call={sessionMessage} submit="Send" read={(f) => ({ runId: p.run, message: String(f.get("message") ?? "") })} done={(o) => setFate(o)}>
    {(wrong) => <Field label="A word to the agent" error={wrong("message")}>{(id, by) => <input id={id} name="message" aria-describedby={by} aria-invalid={!!by} />}</Field>}</Form>
    {fate && <p role="status"><Status of={fate.status} say={fate.status} /> {fate.reply ? inert(fate.reply) : fate.note ?? fates[fate.status]}</p>}</div>;
}
