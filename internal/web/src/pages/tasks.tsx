// Tasks: all of them, or those that are open, run, wait for a person, or failed.
import { useEffect, useRef } from "preact/hooks";
import { boxList, taskList, type Box, type Task } from "../client.gen";
import { Board, doing } from "../cards/board";
import { TaskPane } from "../cards/panes";
import { Many } from "../cards/many";
import { chosen, Narrow, narrowed } from "../cards/narrow";
import { fitsFilter, together } from "../cards/taskfilter";
import { Who } from "../cards/who";
import { useAgain, useList, useOne, type List } from "../list";
import { listen } from "../live";
import { query, setQuery } from "../route";
import { may } from "../session";
import { whole } from "../whole";
import { inert } from "../ui/ansi";
import { usd } from "../ui/money";
import { PaneSwitch } from "../ui/pane";
import { Head, NoFit, Search, Tabs } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Table, type Column } from "../ui/table";
import { Time } from "../ui/time";
import { filing } from "./newtask";
import { table } from "../own";

const shows: Record<string, string[]> = table({
  all: [],
  open: ["status:pending,held,claimed,running,awaiting_ci,awaiting_review,mergeable"],
  running: ["status:claimed,running"],
  waits: ["waits:person"],
  failed: ["status:failed"],
  stuck: ["stuck:true"],
});
const none: { data: Box[] } = { data: [] };

export default function Tasks() {
  const show = query().get("show") ?? "all",
    q = query().get("q") ?? "",
    board = query().get("view") === "board",
    filters = query().getAll("filter"),
    all = together([...(shows[show] ?? []), ...narrowed(show)], filters),
    one = show === "failed"; // what all rows are is not said by each
  const never = all.includes("status:"); // the tab and the filter leave nothing
  const list = useList<Task>(
    all + "\n" + q,
    async (cursor, signal) =>
      never
        ? { data: [] }
        : taskList({ cursor, per_page: board ? 200 : 100, q: q || undefined, filter: all }, { signal }),
    {
      topic: "tasks",
      fits: (t) => all.every((f) => fitsFilter(t, f)) && (!q || t.title.toLowerCase().includes(q.toLowerCase())),
    },
  );
  usePlaces(list);
  const boxes = useOne("boxes", (signal) =>
    may(boxList) ? whole((cursor) => boxList({ cursor, per_page: 100 }, { signal })) : Promise.resolve(none),
  );
  useAgain(
    "runners",
    (x) => !boxes.value.peek()?.data.some((b) => b.id === x.id),
    () => void boxes.load(),
  );
  const nameOf = (id: string) => {
    const b = boxes.value.value?.data.find((x) => x.id === id);
    return b?.name ? inert(b.name) : "box " + id.slice(0, 8);
  };
  // A task that waits for others has no place among those that boxes can take.
  const where = (t: Task) =>
    t.queue_position !== null && !t.holds.some((h) => h.reason === "waiting_dependencies")
      ? "queue " + t.queue_position
      : t.box_id && (t.status === "claimed" || t.status === "running")
        ? nameOf(t.box_id)
        : "";
  const clear = "/ui/tasks" + (board ? "?view=board" : "");
  const empty =
    q || show !== "all" || filters.length || chosen().length ? (
      <NoFit noun="task" of={[show !== "all" && words(show), q && `“${q}”`, ...chosen(), ...filters]} clear={clear} />
    ) : (
      <>
        No tasks yet. File one (<kbd>c</kbd>), or <code>yardmaster task create --repo …</code>
      </>
    );
  return (
    <section class="room">
      <Head title="Tasks" count={list.count}>
        <Tabs label="Show" all={Object.keys(shows)} at={show} to={(s) => setQuery({ show: s === "all" ? "" : s })} />
        <Search label="Filter tasks" value={q} to={(t) => setQuery({ q: t })} now />
        <Tabs
          label="View"
          all={["list", "board"]}
          at={board ? "board" : "list"}
          to={(s) => setQuery({ view: s === "list" ? "" : s })}
        />
        <span class="grow" />
        {!board && <PaneSwitch />}
        <button type="button" class="main" {...filing()}>
          New
        </button>
      </Head>
      <Narrow show={show} />
      {filters.length > 0 && (
        <p>
          Only {filters.join(" and ")}. <a href={clear}>Clear</a>
        </p>
      )}
      {board ? (
        list.state.value === "ready" && list.ids.value.length === 0 ? (
          <p class="empty">{empty}</p>
        ) : (
          <Board list={list} />
        )
      ) : (
        <Table
          list={list}
          id="tasks"
          label="Tasks"
          widths={
            (one ? "" : "150px ") + "minmax(0,1fr) minmax(0,160px) 70px minmax(80px,130px) minmax(60px,110px) 70px 76px"
          }
          href={(t) => "/ui/tasks/" + t.id}
          pane={TaskPane}
          empty={empty}
          many={Many}
          columns={[
            ...(one ? [] : [state]),
            {
              name: "Title",
              wide: true,
              cell: (t) => (
                <>
                  {inert(t.title)}
                  {doing(t) && <small> · {doing(t)}</small>}
                </>
              ),
            },
            { name: "Repository", class: "dim less", rank: 2, cell: (t) => t.repo },
            { name: "Kind", class: "dim less", cell: (t) => t.kind },
            { name: "Box or place", class: "dim less", rank: 4, cell: where },
            {
              name: "Asked by",
              class: "dim less",
              rank: 3,
              cell: (t) => (t.requested_by ? <Who of={"user:" + t.requested_by} /> : "–"),
            },
            { name: "Cost", class: "num less", rank: 3, cell: (t) => usd(t.budget.spent) },
            { name: "Age", class: "dim end", cell: (t) => <Time at={t.created_at} suffix={false} /> },
          ]}
        />
      )}
    </section>
  );
}

const state: Column<Task> = {
  name: "Status",
  cell: (t) => (
    <>
      <Status of={t.status} />
      {t.stuck && <b class="bad"> stuck</b>}
    </>
  ),
};

const gently = 2000; // ms between two questions for the places in the queue

// usePlaces keeps the places in the queue true: a task that leaves the queue moves those
// behind it, of which no patch tells.
function usePlaces(list: List<Task>) {
  const queued = useRef(new Map<string, boolean>());
  for (const id of list.ids.value) {
    const t = list.rows.get(id)?.peek();
    if (t && !queued.current.has(id)) queued.current.set(id, t.status === "pending");
  }
  useEffect(() => {
    let due = 0;
    const places = () => list.ids.peek().some((id) => (list.rows.get(id)?.peek().queue_position ?? null) !== null);
    const ask = () => {
      due = 0;
      void list.freshen(() => taskList({ filter: ["status:pending"], per_page: 200 }));
    };
    const quiet = listen("tasks", (patches) => {
      let moved = false;
      for (const p of patches) {
        const now = p.op !== "remove" && p.row.status === "pending",
          was = queued.current.get(p.id) ?? (p.op !== "remove" && p.row.status === "claimed");
        queued.current.set(p.id, now);
        moved ||= was !== now && !p.there;
      }
      if (moved && places()) due ||= window.setTimeout(ask, gently);
    });
    return () => {
      quiet();
      clearTimeout(due);
    };
  }, [list]);
}
