// An approval that waits: what happens, on which head, and the two decisions. A head
// that moved keeps the card, says so, and asks again.
import { useState } from "preact/hooks";
import { Problem } from "../api";
import { prApprovePending, prSkipPending, type Approval } from "../client.gen";
import { Reviewed } from "./reviewed";
import { inert } from "../ui/ansi";
import { Act, Counts } from "../ui/parts";
import { Status } from "../ui/status";
import { Time } from "../ui/time";

const does: Record<Approval["kind"], string> = { merge: "Merge", close: "Close", push: "Push to", reopen: "Reopen", label: "Label" };

// Stand is what a person would look up before they decide: checks, review, size.
function Stand(p: { of: Pick<Approval, "pr_id" | "checks" | "review" | "size"> }) {
  const { checks, review: r, size } = p.of;
  return <>checks <Status of={checks} noun="checks" /> · review {r.verdict === "failure" ? <a href={`/ui/prs/${p.of.pr_id}?tab=review`}><Reviewed of={r} /></a> : <Reviewed of={r} none="none" />}
    {size && <> · <a href={`/ui/prs/${p.of.pr_id}?tab=changes`}><Counts of={size} /></a></>}</>;
}

export function ApprovalCard(p: { of: Approval }) {
  const a = p.of, [moved, setMoved] = useState("");
  const head = moved || a.head_sha;
  const failed = (e: unknown) => {
    if (!(e instanceof Problem) || !e.body.current_head_sha) return false;
    setMoved(String(e.body.current_head_sha));
    return true;
  };
  const input = () => ({ id: a.pr_id, action_id: a.id, head_sha: head });
  const where = `${a.repo}#${a.number}`;
  return <li class="card" data-id={a.id} data-pr={a.pr_id} data-head={a.head_sha} tabIndex={-1}><div>
    <p><strong>{does[a.kind]}: <a href={"/ui/prs/" + a.pr_id}>{inert(a.title)}</a></strong></p>
    <p class="dim">{where} · head <code>{head.slice(0, 10)}</code>{a.label && <> · label <code>{inert(a.label)}</code></>} · asked <Time at={a.requested_at} /></p>
    <p class="dim"><Stand of={a} /></p>
    {a.why && <p>{inert(a.why)}</p>}
    {a.protected && (a.protected.paths.length + a.protected.weaker.length > 0) && <p class="hold">It changes what protects the repository: {inert(a.protected.paths.join(", "))}{a.protected.more > 0 && ` and ${a.protected.more} more`}.</p>}
    {moved && <p class="hold" role="alert">The branch has moved to <code>{moved.slice(0, 10)}</code>. <a href={`/ui/prs/${a.pr_id}?tab=changes&since=${a.head_sha}`}>See what changed</a>, then decide again.</p>}
    {a.error && <p class="trouble">{inert(a.error)}</p>}</div>
    {a.state === "pending" ? <div class="acts">
      <Act call={prSkipPending} input={input} failed={failed} done={`Skipped: ${where}.`}>Skip</Act>
      <Act call={prApprovePending} input={input} failed={failed} class="main" done={`Approved ${head.slice(0, 7)} of ${where}.`}>Approve {head.slice(0, 7)}</Act></div>
      : <Status of={a.state} noun="approval" />}</li>;
}
