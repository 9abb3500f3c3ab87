// What the state of a task allows, and what is said of it.
import type { Task, TaskCancelled } from "../client.gen";

export const over = ["completed", "merged", "cancelled", "failed"];

// cancels asks before a task is cancelled.
export const cancels = (pull: string | null) =>
  "Cancel the task? It is not begun again, and tasks that depend on it fail." +
  (pull ? " Its pull request is closed, unless the repository's policy keeps it." : "");

// cancelled says what a cancel did: the task may have been over.
export const cancelled = (o: TaskCancelled) => (o.kind === "cancelled" ? "Cancelled." : "It was over already.");

// can tells what the state of a task allows.
export function can(t: Task) {
  const done = over.includes(t.status),
    works = t.status === "claimed" || t.status === "running";
  return {
    cancel: !done && !(t.kind === "review" && t.pr_id !== null),
    reassign: works,
    redispatch:
      t.status === "held" ||
      (t.status === "failed" && t.failure_kind !== "dependency_failed") ||
      (t.status === "running" && t.stuck),
    budget: !done,
  };
}

// afterwards says what is left to do about a task that failed.
export const afterwards = (t: Task) =>
  t.failure_kind === "dependency_failed"
    ? "It goes on if that task is redispatched. A cancelled task is not: file this one anew without it."
    : "It stays so unless somebody redispatches it.";
