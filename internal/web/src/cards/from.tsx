// Where a pull request comes from.
import { taskRunStatus } from "../client.gen";
import { useOne } from "../list";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { usd } from "../ui/money";
import { Fact } from "../ui/parts";

// From is the task that it came from, and what that cost.
export function From(p: { task: string }) {
  const id = p.task,
    sees = may(taskRunStatus),
    one = useOne(id, (signal) => (sees ? taskRunStatus({ id }, { signal }) : Promise.reject(new Error(""))), {
      topic: "tasks",
      id,
    }),
    t = one.value.value;
  return (
    <>
      <Fact name="Task">
        <a href={"/ui/tasks/" + id}>{inert(t?.title || id.slice(0, 8))}</a>
      </Fact>
      {sees && (
        <Fact name="Cost">
          <span class="num">{usd(t?.budget.spent)}</span>
        </Fact>
      )}
    </>
  );
}
