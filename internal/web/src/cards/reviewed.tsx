// What the review of a head has come to, in a few words.
import type { PullRequest } from "../client.gen";
import { Status } from "../ui/status";

// held says how many findings hold a head.
export const held = (n: number, what: string) => `${n} ${n === 1 ? "finding holds" : "findings hold"} ${what}`;

const stages: Partial<Record<PullRequest["review"]["state"], string>> = { due: "not begun", running: "under way" };

// Reviewed says that a head was not reviewed where no review has come to a verdict about it.
// In a line of facts it names the review.
export function Reviewed(p: { of: PullRequest["review"]; named?: boolean }) {
  const r = p.of,
    word = r.verdict === "success" ? "passed" : stages[r.state];
  if (r.verdict === "failure") return <Status of="request_changes" say={held(r.holding, "it")} />;
  return <>{!word ? "not reviewed" : p.named ? "review " + word : word}</>;
}
