// The attempts at a task: how each ended and what it cost, and the transcript of one.
import { taskAttempts, type Run, type TaskDetail } from "../client.gen";
import { useAgain, useList } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { usd } from "../ui/money";
import { Empty } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Table } from "../ui/table";
import { Time, Took } from "../ui/time";
import { NamedBox } from "./named";
import { RunLog } from "./runlog";

// useAttempts are the attempts at a task, fresh as the task and its cost change.
function useAttempts(id: string) {
  const list = useList<Run>(id + "attempts", (cursor, signal) =>
    taskAttempts({ id, cursor, per_page: 200 }, { signal }),
  );
  useAgain("tasks", id, () => void list.load());
  useAgain(
    "sessions",
    (p) => p.op !== "remove" && p.row.task_id === id,
    () => void list.load(),
  );
  return list;
}

export const why = (r: Run) =>
  r.failure_kind ? words(r.failure_kind) : r.ended_reason ? inert(r.ended_reason) : r.ended_at ? "" : "It goes on.";

export function Attempts(p: { id: string }) {
  const list = useAttempts(p.id);
  return (
    <div class="boxed">
      <Table
        list={list}
        id="attempts"
        label="Attempts"
        part
        widths="80px 130px minmax(0,1fr) 80px minmax(80px,140px) 100px 100px"
        href={(r) => `/ui/tasks/${p.id}?run=${r.id}`}
        empty="No box has had it."
        columns={[
          { name: "Attempt", class: "num", cell: (r) => r.attempt },
          { name: "Outcome", cell: (r) => <Status of={r.outcome ?? r.state} noun="run" /> },
          { name: "Why", wide: true, cell: (r) => why(r) || "Transcript" },
          { name: "Cost", class: "num less", rank: 3, cell: (r) => usd(r.usage.cost_usd) },
          { name: "Agent", class: "dim less", cell: (r) => [r.agent, r.model].filter(Boolean).join(" ") },
          { name: "Took", class: "num less", rank: 2, cell: (r) => <Took from={r.started_at} to={r.ended_at} /> },
          { name: "Begun", class: "dim end less", rank: 1, cell: (r) => <Time at={r.started_at} suffix={false} /> },
        ]}
      />
    </div>
  );
}

// Runs is the transcript of the newest attempt, or of the one that the address names.
// Between two attempts it is that of the last one.
export function Runs(p: { of: TaskDetail }) {
  const t = p.of,
    want = query().get("run"),
    list = useAttempts(t.id);
  const runs = list.ids.value
    .map((id) => list.rows.get(id)!.value)
    .sort((a, b) => (a.created_at < b.created_at ? -1 : 1));
  const newest = runs.at(-1),
    id = want ?? t.run_id ?? newest?.id,
    run = runs.find((r) => r.id === id);
  const box = t.box_id && <NamedBox id={t.box_id} />;
  const works = t.status === "claimed" || t.status === "running";
  return (
    <>
      {runs.length > 1 && run && (
        <p>
          <label>
            Attempt{" "}
            <select
              aria-label="Attempt"
              value={run.id}
              onChange={(e) => setQuery({ run: e.currentTarget.value === newest?.id ? "" : e.currentTarget.value })}
            >
              {runs.map((r) => (
                <option key={r.id} value={r.id}>
                  {r.attempt}: {words(r.outcome ?? r.state)}
                </option>
              ))}
            </select>
          </label>{" "}
          {run.ended_at && <span class="dim">{why(run)}</span>}
        </p>
      )}
      {t.status === "pending" && run?.ended_at && !want && (
        <Empty>
          This was attempt {run.attempt}. The next begins when a box takes the task
          {t.queue_position !== null && `, which is at place ${t.queue_position} of the queue`}.
        </Empty>
      )}
      {id ? (
        <RunLog key={id} run={id} live={run ? run.state === "live" : t.run?.state === "live"} />
      ) : works && box ? (
        <Empty>{box} has it, and begins.</Empty>
      ) : t.status === "cancelled" || t.status === "failed" ? (
        <Empty>No box has had it.</Empty>
      ) : (
        <Empty>
          No box has it yet.{t.queue_position !== null && ` It is at place ${t.queue_position} of the queue.`}
        </Empty>
      )}
    </>
  );
}
