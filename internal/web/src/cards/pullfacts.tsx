// The facts of a pull request.
import type { PullRequest } from "../client.gen";
import { From } from "../cards/from";
import { held, Reviewed } from "../cards/reviewed";
import { Who } from "../cards/who";
import { inert } from "../ui/ansi";
import { pieces } from "../ui/markdown";
import { Counts, Fact, Facts, Id } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";

export function About(p: { of: PullRequest }) {
  const r = p.of,
    b = r.babysit;
  return (
    <Facts>
      <Fact name="Repository">
        <a href={"/ui/repos/" + r.repo}>{r.repo}</a>
        {r.number > 0 && "#" + r.number}
      </Fact>
      <Fact name="Branch">
        <code>{inert(r.head_ref)}</code> into <code>{inert(r.base_ref)}</code>
      </Fact>
      <Fact name="Head">
        <Id of={r.head_sha} chars={10} />
      </Fact>
      <Fact name="Checks">
        <Status of={r.checks} noun="checks" />
      </Fact>
      <Fact name="Review">
        {r.review.verdict === "failure" ? (
          <a href="?tab=review">{held(r.review.holding, "the merge")}</a>
        ) : (
          <Reviewed of={r.review} />
        )}
      </Fact>
      {r.state === "open" && (
        <Fact name="Merges">{r.mergeable === "conflict" ? <Status of="conflict" /> : words(r.mergeable)}</Fact>
      )}
      {r.would && (
        <Fact name="The merge would change">
          <Counts of={{ ...r.would, files: r.would.files.length + r.would.more }} />{" "}
          <small>
            of <code>{inert(r.base_ref)}</code> at <code>{r.would.base_sha.slice(0, 10)}</code>
          </small>
        </Fact>
      )}
      {b.state !== "off" && (
        <Fact name="Repair">
          {b.task_id ? <a href={"/ui/tasks/" + b.task_id}>{words(b.state)}</a> : words(b.state)}{" "}
          <small>
            checks {b.ci_rounds_used}/{b.ci_rounds_max}, conflicts {b.conflict_rounds_used}/{b.conflict_rounds_max},
            review {b.review_rounds_used}/{b.review_rounds_max}, requests {b.request_rounds_used}/{b.request_rounds_max}
            {b.queue_full_since && (
              <>
                , waits for room in the queue since <Time at={b.queue_full_since} />
              </>
            )}
            {b.next_round_at && (
              <>
                , next <Time at={b.next_round_at} />
              </>
            )}
          </small>
        </Fact>
      )}
      {r.queue && (
        <Fact name="Merge queue">
          <a href={`/ui/repos/${r.repo}/merge-queue`}>place {r.queue.position}</a>{" "}
          <small>
            {words(r.queue.state)}
            {r.queue.queue === "host" && ", at the host"}
          </small>
        </Fact>
      )}
      {r.task_id && <From task={r.task_id} />}
      <Fact name="Opened">
        <Time at={r.created_at} /> by {r.author ? inert(r.author) : r.author_kind}
      </Fact>
      {r.merged_at && (
        <Fact name="Merged">
          <Time at={r.merged_at} />{" "}
          {r.merged_by && (
            <>
              by <Who of={r.merged_by} />
            </>
          )}{" "}
          {r.merge_sha && <Id of={r.merge_sha} />}
        </Fact>
      )}
      {r.closed_at && (
        <Fact name="Closed">
          <Time at={r.closed_at} /> {r.closed_why && words(r.closed_why)}
          {r.closed_by && (
            <>
              {" "}
              by <Who of={r.closed_by} />
            </>
          )}
        </Fact>
      )}
      {r.labels.length > 0 && <Fact name="Labels">{inert(r.labels.join(", "))}</Fact>}
      {new URL(r.url, location.href).origin !== location.origin && <Fact name="At its host">{pieces(r.url)}</Fact>}
      <Fact name="Id">
        <Id of={r.id} />
      </Fact>
    </Facts>
  );
}
