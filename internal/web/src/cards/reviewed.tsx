// What the review of a head has come to, in a few words.
import type { PullRequest } from "../client.gen";
import { Status } from "../ui/status";

// held says how many findings hold a head.
export const held = (n: number, what: string) => `${n} ${n === 1 ? "finding holds" : "findings hold"} ${what}`;

const stages: Record<PullRequest["review"]["state"], string> = {
  off: "not reviewed",
  due: "review not begun",
  running: "review under way",
  held: "review held",
  reviewed: "reviewed",
  blind: "no model to review it",
  failed: "review failed",
  cancelled: "review cancelled",
};

// Reviewed says what became of the review of a head. One that did not look is no success.
export function Reviewed(p: { of: PullRequest["review"] }) {
  const r = p.of;
  if (r.verdict === "failure") return <Status of="request_changes" say={held(r.holding, "it")} />;
  return <>{stages[r.state]}</>;
}
