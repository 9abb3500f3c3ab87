// Why a task failed, and what can be done about it.
import type { Task } from "../client.gen";
import { afterwards } from "./can";
import { inert } from "../ui/ansi";
import { words } from "../ui/status";

export function Failure(p: { of: Task }) {
  const t = p.of;
  if (!t.failure) return null;
  return (
    <p class="trouble">
      {!t.holds.some((h) => h.reason === t.failure_kind) && <strong>{words(t.failure_kind ?? "failed")} </strong>}
      {inert(t.failure)}
      {t.status === "failed" && <> {afterwards(t)}</>}
      {t.failure_kind === "dependency_failed" && (
        <>
          {" "}
          <a href={`/ui/tasks/${t.id}?tab=graph`}>See what it depends on</a>
        </>
      )}
    </p>
  );
}
