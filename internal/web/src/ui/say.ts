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

// deeds are what a sentence of the API names by its id, as pages call it.
const deeds: Record<string, string> = table({
  "account.oss_verification_apply": "Settings, Open source",
  "account.set_tier": "the page of the account on Platform",
  "billing.checkout": "Settings, Plan and payment",
  "billing.portal": "Settings, Plan and payment",
  "box.ssh_joins": "the page Boxes",
  "grant.issue": "a grant",
  "plan.file_switch_set": "the switch in Settings, Account,",
  "pr.get": "the page of the pull request",
  "self.github_token_set": "the form in Settings, You,",
  "session.events": "the events of the session",
  "task.retry_now": "“Retry now” at the task",
  "template.set": "the form of templates",
  "webhook.create": "Settings, Webhooks",
  "webhook.revive": "Settings, Webhooks",
});

export type Labels = Record<string, string>;

// label is a field of the API for people: as its form calls it, or its words.
export const label = (field: string, labels: Labels = {}): string =>
  Object.hasOwn(labels, field) ? `“${labels[field]}”` : words(field.split(".").at(-1)!);

// spoken is a sentence of the API in which fields are called as their form calls them.
export const spoken = (text: string, fields: string[], labels: Labels = {}): string =>
  text.replace(/`?\b([a-z]+(?:_[a-z0-9]+)+)\b`?/g, (all, field: string) =>
    fields.includes(field) ? label(field, labels) : all,
  );

// plain is a sentence of the API for people: a capability is named by where it is on pages.
export const plain = (text: string): string =>
  text.replace(/`?\b([a-z_]+\.[a-z_]+)\b`?/g, (all, id: string) => deeds[id] ?? all);
