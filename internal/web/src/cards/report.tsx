// What the agent of a task reported, or why there is no report.
import { taskResult, type TaskResult } from "../client.gen";
import { useOne } from "../list";
import { inert } from "../ui/ansi";
import { Markdown } from "../ui/markdown";
import { Coming, Empty } from "../ui/parts";
import { over } from "./can";
import { LeftOut } from "./leftout";
import { NamedAsk } from "./named";

const none = (r: TaskResult) =>
  r.status === "failed" || r.status === "cancelled"
    ? `There is no report: the task ${r.status === "failed" ? "failed" : "was cancelled"} before one was written.`
    : r.report_missing
      ? "The run ended without a report."
      : over.includes(r.status)
        ? "There is no report."
        : "There is no report yet.";

export function Report(p: { task: string }) {
  const id = p.task,
    one = useOne(id + "report", (signal) => taskResult({ id }, { signal }), {
      topic: "tasks",
      id,
      changed: (was, row) => was.status !== row.status,
    });
  const r = one.value.value;
  if (!r) return <Coming of={one} />;
  return (
    <>
      <h2>Report</h2>
      {r.report ? (
        <figure class="agent">
          <figcaption>Written by a program</figcaption>
          <Markdown text={r.report} />
        </figure>
      ) : (
        <Empty>{none(r)}</Empty>
      )}
      <LeftOut of={r.left_out} />
      {r.ask_ids.length > 0 && (
        <p>
          Asks it filed:{" "}
          {r.ask_ids.map((a, i) => (
            <>
              {i > 0 && ", "}
              <NamedAsk id={a} />
            </>
          ))}
        </p>
      )}
      {r.result !== null && (
        <pre class="raw" tabIndex={0}>
          {inert(JSON.stringify(r.result, null, 2))}
        </pre>
      )}
    </>
  );
}
