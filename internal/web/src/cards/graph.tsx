// Graph is what a task depends on and what it holds up, by names and states.
import { taskRunStatus, type TaskDetail } from "../client.gen";
import { useAgain, useOne } from "../list";
import { inert } from "../ui/ansi";
import { Coming, Empty } from "../ui/parts";
import { Status } from "../ui/status";

// names reads tasks by their ids. One that cannot be read keeps its id.
const names = (ids: string[], signal: AbortSignal) =>
  Promise.all(
    ids.map((id) =>
      taskRunStatus({ id }, { signal }).then(
        (t) => ({ id, title: t.title, status: t.status as string | undefined }),
        () => ({ id, title: id.slice(0, 8), status: undefined }),
      ),
    ),
  );

export function Graph(p: { of: TaskDetail }) {
  const t = p.of,
    up = [...new Set([...t.depends_on, ...(t.plan?.upstream ?? [])])],
    down = t.plan?.downstream ?? [],
    ids = [...up, ...down];
  const one = useOne(ids.join(), (signal) => names(ids, signal));
  useAgain(
    "tasks",
    (x) => ids.includes(x.id),
    () => void one.load(),
  );
  const all = one.value.value;
  if (!ids.length) return <Empty>It depends on no task, and its plan has none that waits for it.</Empty>;
  if (!all) return <Coming of={one} />;
  const part = (name: string, some: string[]) =>
    some.length > 0 && (
      <section>
        <h2>{name}</h2>
        <ul class="cards">
          {all
            .filter((x) => some.includes(x.id))
            .map((x) => (
              <li key={x.id} class="item">
                <a href={"/ui/tasks/" + x.id}>{inert(x.title)}</a>
                {x.status && <Status of={x.status} noun="task" />}
              </li>
            ))}
        </ul>
      </section>
    );
  return (
    <>
      {part("Depends on", up)}
      {part("Holds up", down)}
    </>
  );
}
