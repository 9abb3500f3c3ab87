// Tasks: all of them, or those that are open, run, wait for a person, or failed.
import { taskCancel, taskList, type Task } from "../client.gen";
import { said } from "../api";
import { useList } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { usd } from "../ui/money";
import { Head, Search, Tabs } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Table } from "../ui/table";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";
import { openNewTask } from "./newtask";

const over = ["completed", "merged", "cancelled", "failed"];
const shows: Record<string, { states: string[]; filter?: string[]; fits: (t: Task) => boolean }> = {
  all: { states: [], fits: () => true },
  open: { states: ["pending", "held", "claimed", "running", "awaiting_ci", "awaiting_review", "mergeable"], fits: (t) => !over.includes(t.status) },
  running: { states: ["claimed", "running"], fits: (t) => t.status === "running" || t.status === "claimed" },
  waits: { states: [], filter: ["waits:person"], fits: (t) => t.holds.some((h) => h.clear !== null && h.blocking) },
  failed: { states: ["failed"], fits: (t) => t.status === "failed" },
  stuck: { states: [], filter: ["stuck:true"], fits: (t) => t.stuck },
};

export default function Tasks() {
  const show = query().get("show") ?? "all", q = query().get("q") ?? "", filters = query().getAll("filter"), own = shows[show] ?? shows["all"]!;
  const list = useList<Task>(show + "\n" + q + "\n" + filters, (cursor, signal) => taskList({ cursor, per_page: 100, q: q || undefined, filter: [...filters, ...(own.filter ?? []), ...(own.states.length ? ["status:" + own.states.join(",")] : [])] }, { signal }),
    { topic: "tasks", fits: (t) => own.fits(t) && !filters.length && (!q || t.title.toLowerCase().includes(q.toLowerCase())) });
  return <section class="fill">
    <Head title="Tasks" count={list.ids.value.length}><Tabs label="Show" all={Object.keys(shows)} at={show} to={(s) => setQuery({ show: s === "all" ? "" : s })} />
      <Search label="Filter tasks" value={q} to={(t) => setQuery({ q: t })} /><span class="grow" /><button type="button" class="main" onClick={openNewTask}>New</button></Head>
    {filters.length > 0 && <p>Only {filters.join(" and ")}. <a href={"/ui/tasks"}>Clear</a></p>}
    <Table list={list} id="tasks" label="Tasks" widths="150px minmax(0,1fr) minmax(0,160px) 70px 90px 80px 90px" href={(t) => "/ui/tasks/" + t.id}
      empty={q || show !== "all" ? <>No task fits. <a href="/ui/tasks">Show all</a>.</> : <>No tasks yet. File one (<kbd>c</kbd>), or <code>yardmaster task create --repo …</code></>}
      keys={(t, key) => { if (key !== "x") return false; void taskCancel({ id: t.id }).then((o) => tell(o.kind === "cancelled" ? "Cancelled." : "It was over already."), (e) => tell(said(e))); return true; }}
      columns={[
        { name: "Status", cell: (t) => <><Status of={t.status} />{t.stuck && <b class="bad"> stuck</b>}</> },
        { name: "Title", wide: true, cell: (t) => <>{inert(t.title)}{t.holds[0] && <small> · {words(t.holds[0].reason)}</small>}</> },
        { name: "Repository", class: "dim less", cell: (t) => t.repo },
        { name: "Kind", class: "dim less", cell: (t) => t.kind },
        { name: "Place", class: "dim less", cell: (t) => t.queue_position !== null ? "queue " + t.queue_position : t.attempt > 1 ? "attempt " + t.attempt : "" },
        { name: "Cost", class: "num less", cell: (t) => usd(t.budget.spent) },
        { name: "Age", class: "dim end", cell: (t) => <Time at={t.created_at} suffix={false} /> },
      ]} />
  </section>;
}
