// What runs now.
import { taskList, type Task } from "../client.gen";
import { NamedBox } from "../cards/named";
import { useList } from "../list";
import { inert } from "../ui/ansi";
import { usd } from "../ui/money";
import { Empty, Loading, More, Trouble } from "../ui/parts";
import { Status } from "../ui/status";
import { Took } from "../ui/time";
import { TaskCard } from "./task";
import { rowsOf } from "./wrong";

export function Runs() {
  const runs = useList<Task>(
    "r",
    (cursor, signal) => taskList({ cursor, filter: ["status:running,claimed"], per_page: 50 }, { signal }),
    { topic: "tasks", fits: (t) => t.status === "running" || t.status === "claimed", drop: true },
  );
  return (
    <>
      <h2>Runs now</h2>
      {runs.state.value === "loading" ? (
        <Loading />
      ) : runs.state.value === "failed" ? (
        <Trouble error={new Error(runs.error.value)} again={() => void runs.load()} />
      ) : runs.ids.value.length ? (
        <ul class="cards" id="runs">
          {rowsOf(runs).map((t) => (
            <TaskCard key={t.id} of={t}>
              {t.box_id && (
                <p class="dim">
                  on <NamedBox id={t.box_id} />
                  {t.activity && <> · {inert(t.activity)}</>}
                </p>
              )}
              {t.holds.some((h) => h.clear?.capability.startsWith("blocker.")) && (
                <p class="hold">
                  It waits for <a href="#waits">an answer above</a>.
                </p>
              )}
              <div class="acts">
                <Status of={t.status} />
                <Took from={t.started_at ?? t.claimed_at} to={null} /> <span class="num">{usd(t.budget.spent)}</span>
              </div>
            </TaskCard>
          ))}
        </ul>
      ) : (
        <Empty>No box is at work.</Empty>
      )}
      <More of={runs} />
    </>
  );
}
