// An approval that waits: what happens, on which head, and the two decisions. A head
// that moved keeps the card, says so, and asks again.
import { useState } from "preact/hooks";
import { Problem } from "../api";
import {
  prApprovePending,
  prSkipPending,
  prUnapprove,
  type Approval,
  type BroughtBack,
  type Protected,
} from "../client.gen";
import { Reviewed } from "./reviewed";
import { LeftOut } from "./leftout";
import { NoChecks, Unwanted } from "./unwanted";
import { RequestChanges } from "./said";
import { Item } from "./item";
import { inert } from "../ui/ansi";
import { usd } from "../ui/money";
import { Act, Counts } from "../ui/parts";
import { Status } from "../ui/status";
import { Time } from "../ui/time";

const does: Record<Approval["kind"], string> = {
  merge: "Merge",
  close: "Close",
  push: "Push to",
  reopen: "Reopen",
  label: "Label",
};

// Stand is what a person would look up before they decide: checks, review, size.
function Stand(p: { of: Pick<Approval, "pr_id" | "checks" | "review" | "size"> }) {
  const { checks, review: r, size } = p.of;
  return (
    <>
      checks <Status of={checks} noun="checks" /> ·{" "}
      {r.verdict === "failure" ? (
        <>
          review{" "}
          <a href={`/ui/prs/${p.of.pr_id}?tab=review`}>
            <Reviewed of={r} />
          </a>
        </>
      ) : (
        <Reviewed of={r} />
      )}
      {size && (
        <>
          {" "}
          ·{" "}
          <a href={`/ui/prs/${p.of.pr_id}?tab=changes`}>
            <Counts of={size} />
          </a>
        </>
      )}
    </>
  );
}

// broughtBack says what a merge would bring back that was dropped.
export function broughtBack(b: BroughtBack) {
  const what = [inert(b.paths.join(", ")) + (b.more > 0 ? ` and ${b.more} more` : "")].filter(Boolean);
  if (b.commits > 0) {
    what.push(`${b.commits} ${b.commits === 1 ? "commit" : "commits"} that the base was rewritten without`);
  }
  return `The merge would bring back what was dropped: ${what.join("; ")}.`;
}

// Guarded is what a merge would change that protects the repository: paths, and each field of
// the policy that would hold agents less, with both of its values.
function Guarded(p: { of: Protected }) {
  const { paths, more, weaker, problem, back } = p.of;
  return (
    <div class="hold">
      {paths.length > 0 && (
        <p>
          It changes what protects the repository: {inert(paths.join(", "))}
          {more > 0 && ` and ${more} more`}.
        </p>
      )}
      {back && <p>{broughtBack(back)}</p>}
      {problem && <p>The policy file would not be valid, and the defaults would be in force: {inert(problem)}.</p>}
      {weaker.length > 0 && (
        <>
          <p>Of the policy would change:</p>
          <ul>
            {weaker.map((w) => (
              <li key={w.field + w.would}>
                <code>{inert(w.field)}</code> from <code>{inert(w.was) || "nothing"}</code> to{" "}
                <code>{inert(w.would) || "nothing"}</code>
                {w.why && `: ${inert(w.why)}`}
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

// ApprovalCard shows a question. What the work has cost is said where it is known.
// On the page of its pull request (here) it does not name that again.
export function ApprovalCard(p: {
  of: Omit<Approval, "cost_usd"> & Partial<Pick<Approval, "cost_usd">>;
  here?: boolean;
}) {
  const a = p.of,
    [moved, setMoved] = useState("");
  const head = moved || a.head_sha;
  const failed = (e: unknown) => {
    if (!(e instanceof Problem) || !e.body.current_head_sha) return false;
    setMoved(String(e.body.current_head_sha));
    return true;
  };
  const input = () => ({ id: a.pr_id, action_id: a.id, head_sha: head });
  const where = `${a.repo}#${a.number}`;
  return (
    <Item id={a.id} pr={a.pr_id} head={a.head_sha}>
      <div>
        <p>
          <strong>
            {p.here ? (
              does[a.kind] + " this pull request"
            ) : (
              <>
                {does[a.kind]}: <a href={"/ui/prs/" + a.pr_id}>{inert(a.title)}</a>
              </>
            )}
          </strong>
        </p>
        <p class="dim">
          {!p.here && where + " · "}head <code>{head.slice(0, 10)}</code>
          {a.label && (
            <>
              {" "}
              · label <code>{inert(a.label)}</code>
            </>
          )}{" "}
          · asked <Time at={a.requested_at} />
          {a.state === "pending" && (
            <>
              {" "}
              · lapses <Time at={a.expires_at} />
            </>
          )}
        </p>
        <p class="dim">
          <Stand of={a} />
          {a.cost_usd !== undefined && (
            <>
              {" "}
              · cost <span class="num">{usd(a.cost_usd)}</span>
            </>
          )}
        </p>
        <Unwanted of={a.unwanted} />
        <LeftOut of={a.left_out} />
        <NoChecks of={a.checks} />
        {a.why && (
          <figure class="agent">
            <figcaption>Written by a program</figcaption>
            <p>{inert(a.why)}</p>
          </figure>
        )}
        {a.protected && <Guarded of={a.protected} />}
        {moved && (
          <p class="hold" role="alert">
            The branch has moved to <code>{moved.slice(0, 10)}</code>.{" "}
            <a href={`/ui/prs/${a.pr_id}?tab=changes&since=${a.head_sha}`}>See what changed</a>, then decide again.
          </p>
        )}
        {a.error && (
          <p class="trouble">
            {inert(a.error)}
            {a.retry_at && (
              <>
                {" "}
                Tried again <Time at={a.retry_at} />.
              </>
            )}
          </p>
        )}
      </div>
      {a.state === "pending" ? (
        <div class="acts">
          <Act call={prSkipPending} does="skip" input={input} failed={failed} done={`Skipped: ${where}.`}>
            Skip
          </Act>
          {p.here && a.kind === "merge" && <RequestChanges id={a.pr_id} head={head} />}
          <Act
            call={prApprovePending}
            input={input}
            failed={failed}
            does="approve"
            class="main"
            done={`Approved ${head.slice(0, 7)} of ${where}.`}
          >
            Approve {head.slice(0, 7)}
          </Act>
        </div>
      ) : (
        <div class="acts">
          <Status of={a.state} noun="approval" />
          {p.here && a.state === "approved" && a.kind === "merge" && (
            <Act call={prUnapprove} input={{ id: a.pr_id, head_sha: a.head_sha }} done="Taken back. It is asked again.">
              Take back
            </Act>
          )}
        </div>
      )}
    </Item>
  );
}
