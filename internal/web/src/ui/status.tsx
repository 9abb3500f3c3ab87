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

const shapes: Record<Tone, string> = {
  wait: "M3 8a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
  run: "M8 3a5 5 0 1 1-5 5",
  ask: "M5.5 4v8M10.5 4v8",
  good: "M3.5 8.5l3 3 6-7",
  bad: "M4 4l8 8M12 4l-8 8",
  off: "M3 8h10",
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
  return (
    <svg viewBox="0 0 16 16" aria-hidden="true">
      <path d={shapes[p.tone]} />
    </svg>
  );
}
