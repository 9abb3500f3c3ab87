// What the review of a head has come to, in a few words.
import type { PullRequest } from "../client.gen";
import { Status } from "../ui/status";

// held says how many findings hold a head.
export const held = (n: number, what: string) => `${n} ${n === 1 ? "finding holds" : "findings hold"} ${what}`;

export function Reviewed(p: { of: PullRequest["review"]; none?: string }) {
  const r = p.of;
  return r.verdict === "failure" ? <Status of="request_changes" say={held(r.holding, "it")} /> : <>{r.verdict === "success" ? "passed" : r.state === "running" ? "under way" : p.none}</>;
}
