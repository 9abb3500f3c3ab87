// How far the repair of a pull request by agents has come.
import type { PullRequest } from "../client.gen";
import { words } from "../ui/status";

// repair is its state, and the rounds that are left; nothing where there is none.
export function repair(p: PullRequest): string {
  const b = p.babysit,
    left =
      b.ci_rounds_max -
      b.ci_rounds_used +
      (b.conflict_rounds_max - b.conflict_rounds_used) +
      (b.review_rounds_max - b.review_rounds_used) +
      (b.request_rounds_max - b.request_rounds_used);
  return b.state === "off" || b.state === "done" ? "" : `${words(b.state)}, ${left} left`;
}
