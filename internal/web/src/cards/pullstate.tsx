// The state of a pull request: one that is open and no more than a draft is called a draft.
import type { PullRequest } from "../client.gen";
import { Status, words } from "../ui/status";

export function PullState(p: { of: PullRequest }) {
  const r = p.of;
  return <Status of={r.state} noun="pr" say={r.draft && r.state === "open" ? "draft" : words(r.state)} />;
}
