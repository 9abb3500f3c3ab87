// Status is a shape, a word and a colour, in that order of trust. One table says for
// every noun which it is, so that no two pages say different things of one object.
import { table } from "../own";
export type Tone = "wait" | "run" | "ask" | "good" | "bad" | "off";

const tones: Record<Tone, string[]> = {
  wait: [
    "pending",
    "waiting",
    "queued",
    "enrolled",
    "created",
    "scheduled",
    "none",
    "unread",
    "invited",
    "opening",
    "draft",
    "resolving",
    "ready",
    "unconfirmed",
  ],
  run: [
    "claimed",
    "running",
    "awaiting_ci",
    "fixing_ci",
    "drafting",
    "leased",
    "live",
    "triaging",
    "planning",
    "merging",
    "open",
    "executing",
    "active",
    "reviewing",
    "draining",
    "in_progress",
    "sending",
    "finding",
    "sorting",
    "verifying",
    "building",
    "checking",
    "batched",
    "going",
    "surveying",
    "read",
  ],
  ask: [
    "held",
    "awaiting_review",
    "mergeable",
    "escalated",
    "parked",
    "needs_person",
    "interrupted",
    "stale",
    "paused",
    "needs_input",
    "stalled",
    "medium",
  ],
  good: [
    "completed",
    "merged",
    "done",
    "passed",
    "online",
    "approved",
    "applied",
    "succeeded",
    "answered",
    "submitted",
    "became_tasks",
    "delivered",
    "valid",
    "enabled",
    "resolved",
    "accepted",
    "verified",
    "approve",
    "replied",
  ],
  bad: [
    "failed",
    "lost",
    "revoked",
    "exhausted",
    "offline",
    "conflict",
    "invalid",
    "refused",
    "request_changes",
    "disabled",
    "suspended",
    "unfit",
    "critical",
    "high",
  ],
  off: [
    "cancelled",
    "skipped",
    "withdrawn",
    "expired",
    "dropped",
    "closed",
    "drained",
    "ended",
    "covered",
    "archived",
    "neutral",
    "unknown",
    "comment",
    "decommissioned",
  ],
};

// shapes are a form of each tone and what is drawn upon it, either of which may be a line ("st").
const shapes: Record<Tone, [form: string, line: boolean, on?: string]> = {
  wait: ["M2.4 8a5.6 5.6 0 1 0 11.2 0A5.6 5.6 0 1 0 2.4 8z", true],
  run: ["M2 8a6 6 0 1 0 12 0A6 6 0 1 0 2 8z", true, "M8 4.6a3.4 3.4 0 1 1-3.4 3.4H8z"],
  ask: ["M8 .9 15.1 8 8 15.1.9 8z", false, "M6.4 5.6v4.8M9.6 5.6v4.8"],
  good: ["M1.2 8a6.8 6.8 0 1 0 13.6 0A6.8 6.8 0 1 0 1.2 8z", false, "m5 8.3 2.1 2.1L11.2 6"],
  bad: [
    "M4.6 1.6h6.8a3 3 0 0 1 3 3v6.8a3 3 0 0 1-3 3H4.6a3 3 0 0 1-3-3V4.6a3 3 0 0 1 3-3z",
    false,
    "m5.6 5.6 4.8 4.8m0-4.8-4.8 4.8",
  ],
  off: ["M2.1 8a5.9 5.9 0 1 0 11.8 0A5.9 5.9 0 1 0 2.1 8z", true, "M5.4 8h5.2"],
};

// some states mean another thing for some nouns.
const special: Record<string, Tone> = table({
  "approval.pending": "ask",
  "blocker.open": "ask",
  "escalation.open": "ask",
  "pr.open": "run",
  "issue.open": "wait",
  "run.ended": "off",
  "task.pending": "wait",
  "checks.pending": "run",
  "checks.none": "off",
  "review.pending": "run",
});

// toneOf is the tone of a state of a noun.
export function toneOf(state: string, noun = ""): Tone {
  const own = special[noun + "." + state];
  if (own) return own;
  for (const tone of Object.keys(tones) as Tone[]) if (tones[tone].includes(state)) return tone;
  return "off";
}

// words are a state for people.
export const words = (state: string) => state.replaceAll("_", " ");

export function Status(p: { of: string; noun?: string; say?: string }) {
  const tone = toneOf(p.of, p.noun);
  return (
    <span class={"status " + tone}>
      <Mark tone={tone} />
      {p.say ?? words(p.of)}
    </span>
  );
}

export function Mark(p: { tone: Tone }) {
  const [form, line, on] = shapes[p.tone];
  return (
    <svg class={"mark " + p.tone} viewBox="0 0 16 16" aria-hidden="true">
      <path class={line ? "st" : "fl"} d={form} />
      {on && <path class={p.tone === "run" ? "fl" : line ? "st" : "ko"} d={on} />}
    </svg>
  );
}
