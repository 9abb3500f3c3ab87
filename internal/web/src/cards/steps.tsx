// The steps of a task beside its row: what is done is one line, and what goes on stands by itself.
import { useState } from "preact/hooks";
import { runTimeline, type TaskTimeline } from "../client.gen";
import { useAgain, useOne } from "../list";
import { many } from "../ui/money";
import { Coming } from "../ui/parts";
import { caused, names, took } from "./timeline";

// Steps asks the server once they are unfolded: going through a list asks it for nothing.
export function Steps(p: { id: string }) {
  const [open, set] = useState(false);
  return (
    <details open={open} onToggle={(e) => e.currentTarget.open !== open && set(e.currentTarget.open)}>
      <summary>Its steps</summary>
      {open && <All id={p.id} />}
    </details>
  );
}

function All(p: { id: string }) {
  const one = useOne<TaskTimeline>(p.id + "steps", (signal) => runTimeline({ id: p.id }, { signal })),
    again = () => void one.load();
  useAgain("tasks", p.id, again);
  useAgain("prs", (x) => x.op !== "remove" && x.row.task_id === p.id, again);
  const t = one.value.value;
  if (!t) return <Coming of={one} />;
  const now = Date.parse(t.at),
    done = t.phases.filter((x) => x.ended_at !== null),
    wrong = done.filter((x) => x.outcome === "failed" || x.outcome === "lost").length;
  return (
    <ul>
      {done.length > 0 && (
        <li class="dim">
          {many(done.length, "step")} done: {[...new Set(done.map((x) => names[x.phase]))].join(", ")}
          {wrong > 0 && `; ${wrong} failed`}
        </li>
      )}
      {t.phases
        .filter((x) => x.ended_at === null)
        .map((x) => (
          <li key={x.phase + x.began_at}>{[names[x.phase], took(x, now), caused(x)].filter(Boolean).join(" · ")}</li>
        ))}
    </ul>
  );
}
