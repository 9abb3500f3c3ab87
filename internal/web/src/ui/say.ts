// Words of the API for people. What a task waits for is said as the command line says it.
import { table } from "../own";
import { words } from "./status";

const reasons: Record<string, string> = table({
  needs_person: "for a person",
  waiting_person: "for a task that waits for a person",
  blocked: "for an answer",
  unpriced_model: "for a price of its model",
  budget_exhausted: "for money",
  no_box_online: "for a box",
  boxes_busy: "for a free box",
  boxes_draining: "for a box that takes work",
  box_unfit: "for a box that can work",
  no_credential: "for a model key",
  model_unavailable: "for a model",
  seats_exhausted: "for a seat",
  waiting_dependencies: "for other tasks",
  retry_backoff: "before its next try",
  conflict: "for a task on the same files",
  code_host_rate: "for its code host",
  queue_full: "for room in the queue",
  repo_disabled: "for its repository to be enabled",
  plan_does_not_cover: "for a tier that covers private repositories",
  template_missing: "for its template",
  agent_not_installed: "for a box with its agent",
  isolation_unavailable: "for a box that isolates it",
});

// waits is what something waits for: "waits for a box".
export const waits = (reason: string): string => "waits " + (reasons[reason] ?? "because of " + words(reason));
