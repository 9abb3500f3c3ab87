// Board shows tasks by state, in columns to read: states are not dragged.
import { useEffect } from "preact/hooks";
import type { Task } from "../client.gen";
import type { List } from "../list";
import { inert } from "../ui/ansi";
import { Loading, Trouble } from "../ui/parts";
import { waits } from "../ui/say";
import { Status } from "../ui/status";
import { Time } from "../ui/time";

const columns: { name: string; states: Task["status"][] }[] = [
  { name: "Waiting", states: ["pending"] },
  { name: "Held", states: ["held"] },
  { name: "Working", states: ["claimed", "running"] },
  { name: "In checks", states: ["awaiting_ci"] },
  { name: "In review", states: ["awaiting_review", "mergeable"] },
  { name: "Done", states: ["completed", "merged"] },
  { name: "Failed", states: ["failed"] },
  { name: "Cancelled", states: ["cancelled"] },
];

// doing is what a task does now, or what it waits for.
export const doing = (t: Task): string =>
  t.status === "running" && t.activity ? inert(t.activity) : t.holds[0] ? waits(t.holds[0].reason) : "";

export function Board(p: { list: List<Task> }) {
  const l = p.list;
  // nobody reads further down: what is new comes in
  useEffect(() => {
    l.hold = false;
    l.admit();
  }, [l]);
  if (l.state.value === "loading") return <Loading />;
  if (l.state.value === "failed") return <Trouble error={l.failure.value} again={() => void l.load()} />;
  const rows = l.ids.value.flatMap((id) => l.rows.get(id)?.value ?? []);
  return (
    <>
      {l.failure.value !== undefined && <Trouble error={l.failure.value} again={() => void l.load()} />}
      <div class="board" role="region" tabIndex={0} aria-label="Tasks by state">
        {columns.map((c) => {
          const own = rows.filter((t) => c.states.includes(t.status));
          return (
            <section key={c.name} aria-label={c.name}>
              <h2>
                {c.name} <span class="dim num">{own.length}</span>
              </h2>
              <ul>
                {own.map((t) => (
                  <li key={t.id}>
                    <a href={"/ui/tasks/" + t.id}>
                      <b>{inert(t.title)}</b>
                      {doing(t) && <small>{doing(t)}</small>}
                      <small>
                        {c.states.length > 1 && <Status of={t.status} />} {t.stuck && "stuck "}
                        {t.repo} · <Time at={t.created_at} suffix={false} />
                      </small>
                    </a>
                  </li>
                ))}
              </ul>
            </section>
          );
        })}
      </div>
      {l.more && (
        <p>
          <button type="button" onClick={() => void l.older()}>
            Show older ones
          </button>
        </p>
      )}
    </>
  );
}
