// One pull request: the decision that it waits for, what it changes, its checks, what
// reviews found, the report of the agent.
import { useLayoutEffect, useState } from "preact/hooks";
import {
  ciRuns,
  prAskAgain,
  prComments,
  prGet,
  prMerge,
  prRearmBabysit,
  prUnapprove,
  reviewFindings,
  reviewRerun,
  reviewStatus,
  type Check,
  type Finding,
  type PullRequest,
  type PullRequestDetail,
  type PullRequestThread,
  type ReviewRun,
} from "../client.gen";
import { PullState } from "../cards/pullstate";
import { ApprovalCard, broughtBack } from "../cards/approval";
import { Arm } from "../cards/arm";
import { decide } from "../cards/decide";
import { FindingCard } from "../cards/finding";
import { From } from "../cards/from";
import { Report } from "../cards/report";
import { held, Reviewed } from "../cards/reviewed";
import { RequestChanges, Say, TakeBack, ThreadCard } from "../cards/said";
import { LeftOut } from "../cards/leftout";
import { Unwanted } from "../cards/unwanted";
import { Who } from "../cards/who";
import { useAgain, useList, useOne, type List } from "../list";
import { go, here, query, setQuery, type PageProps } from "../route";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { gate } from "../ui/gate";
import { useKeys } from "../ui/keys";
import { Markdown, pieces } from "../ui/markdown";
import { Act, Coming, Counts, Empty, Fact, Facts, Head, Id, Loading, More, Tabs, Trouble } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Status, words } from "../ui/status";
import { Table } from "../ui/table";
import { Time, Took } from "../ui/time";
import { Changes } from "./changes";
import { brain, verdict } from "./reviewed";

const tabs = ["changes", "conversation", "description", "checks", "review", "report", "raw"] as const;

// The address of the changes is that of the page with them: a list that one came from, and
// the other parts of the page, know it by that alone.
export default function PullRequestPage(p: PageProps) {
  const path = here.value.pathname,
    own = path.replace(/\/diff\/*$/, "");
  useLayoutEffect(() => {
    if (own === path) return;
    const to = new URL(here.peek());
    to.searchParams.delete("tab");
    go(own + to.search + to.hash, { replace: true });
  }, [path]);
  return own === path ? <Whole params={p.params} /> : <Loading />;
}

function Whole(p: PageProps) {
  const id = p.params.id!,
    tab = query().get("tab") ?? "changes";
  const one = useOne<PullRequestDetail>(id, (signal) => prGet({ id }, { signal }), { topic: "prs", id });
  const findings = useList<Finding>(id, (cursor, signal) => reviewFindings({ id, cursor, per_page: 200 }, { signal }));
  const threads = useList<PullRequestThread>(id + "threads", (cursor, signal) =>
    prComments({ id, cursor, per_page: 50 }, { signal }),
  );
  const [looked, setLooked] = useState("");
  useAgain("prs", id, () => void findings.refresh());
  useAgain("prs", id, () => void threads.refresh());
  useAgain(
    "approvals",
    (x) => x.row?.pr_id === id,
    () => void one.load(),
  );
  const r = one.value.value,
    a = r?.pending_action;
  const pick = (which: "approve" | "skip") => a && void decide(a.id, which, id, a.head_sha);
  useKeys([
    { keys: "a", does: "approve", run: () => pick("approve") },
    { keys: "s", does: "skip", run: () => pick("skip") },
  ]);
  if (!r)
    return (
      <>
        <Head title="Pull request" />
        <Coming of={one} />
      </>
    );
  const rows = findings.ids.value.map((f) => findings.rows.get(f)!.value),
    said = threads.ids.value.map((t) => threads.rows.get(t)!.value);
  return (
    <div class={tab === "changes" ? "room tall" : undefined}>
      <Head title={inert(r.title)}>
        <PullState of={r} />
        <span class="grow" />
        <Actions of={r} />
      </Head>
      {a && (
        <ul class="cards alone" id="decision" aria-label="Decision">
          <ApprovalCard
            key={a.id}
            here
            of={{
              ...a,
              repo: r.repo,
              number: r.number,
              title: r.title,
              url: r.url,
              checks: r.checks,
              review: r.review,
              size: r.size,
              unwanted: r.unwanted,
              left_out: r.left_out,
            }}
          />
        </ul>
      )}
      {a?.state === "pending" && looked && looked !== a.head_sha && (
        <p class="hold" role="alert">
          The question is about <code>{a.head_sha.slice(0, 10)}</code>, and you are looking at{" "}
          <code>{looked.slice(0, 10)}</code>.
        </p>
      )}
      {r.needs_person && r.needs_person.capability !== "pr.approve_pending" && (
        <p class="hold">
          <strong>{words(r.needs_person.why)}</strong>{" "}
          <span class="dim">
            since <Time at={r.needs_person.since} suffix={false} />
          </span>{" "}
          It waits until {inert(r.needs_person.clears_when)}
        </p>
      )}
      {r.otherwise && (
        <p class="trouble" role="alert">
          {inert(r.otherwise)}
        </p>
      )}
      {r.state === "open" && !a && <Unwanted of={r.unwanted} />}
      {!a && <LeftOut of={r.left_out} />}
      {r.would?.back && !a?.protected?.back && <p class="hold">{broughtBack(r.would.back)}</p>}
      <About of={r} />
      <Tabs
        label="Parts of the pull request"
        all={tabs}
        at={tab}
        to={(s) => setQuery({ tab: s === "changes" ? "" : s })}
      />
      {tab === "conversation" ? (
        <Conversation of={r} list={threads} rows={said} />
      ) : tab === "description" ? (
        <Description of={r} />
      ) : tab === "checks" ? (
        <Checks id={id} />
      ) : tab === "review" ? (
        <Review of={r} findings={findings} rows={rows} />
      ) : tab === "report" ? (
        r.task_id ? (
          <Report task={r.task_id} />
        ) : (
          <Empty>It did not come from a task, so there is no report.</Empty>
        )
      ) : tab === "raw" ? (
        <Raw call={prGet} input={{ id }} of={r} open />
      ) : (
        <Changes pr={r} findings={rows} threads={said} looked={setLooked} />
      )}
    </div>
  );
}

function About(p: { of: PullRequest }) {
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

// Actions are what a person may do whether asked or not.
function Actions(p: { of: PullRequest }) {
  const r = p.of,
    [arm, setArm] = useState(false),
    head = r.head_sha;
  if (r.state !== "open") return null;
  const asked = r.pending_action?.state === "pending" && r.pending_action.kind === "merge",
    going = r.pending_action?.state === "approved";
  return (
    <>
      {!asked && !going && (
        <Act call={prAskAgain} input={() => ({ id: r.id, head_sha: head })} done="Asked.">
          Ask
        </Act>
      )}
      {!asked && !going && (
        <Act
          call={prMerge}
          input={() => ({ id: r.id, head_sha: head })}
          confirm={`Merge ${head.slice(0, 10)} into ${r.base_ref}?`}
          done="It is merged as soon as it can be."
        >
          Merge {head.slice(0, 7)}
        </Act>
      )}
      {going && r.pending_action?.kind === "merge" && r.pending_action.decided_by !== "policy" && (
        <Act
          call={prUnapprove}
          input={() => ({ id: r.id, head_sha: head })}
          done="Taken back. The question is open again."
        >
          Take the approval back
        </Act>
      )}
      {!asked && <RequestChanges id={r.id} head={head} />}
      <button type="button" {...gate(prRearmBabysit, () => setArm(true))}>
        Re-arm repair
      </button>
      {arm && (
        <Dialog title="Let agents repair it again" close={() => setArm(false)}>
          <Arm id={r.id} focus done={() => setArm(false)} />
        </Dialog>
      )}
    </>
  );
}

function Checks(p: { id: string }) {
  const list = useList<Check>(
    p.id + "checks",
    (cursor, signal) => ciRuns({ cursor, per_page: 50, filter: ["pr:" + p.id] }, { signal }),
    { topic: "ci", fits: (c) => c.pr_id === p.id },
  );
  if (!may(ciRuns))
    return (
      <Empty>
        To see checks you need the scope <code>{ciRuns.scope}</code>.
      </Empty>
    );
  return (
    <div class="boxed">
      <Table
        list={list}
        id="checks"
        part
        label="Checks"
        widths="130px minmax(0,1fr) 100px 70px 90px 90px"
        href={(c) => "/ui/ci?check=" + c.id}
        empty="No check has run. The policy file of the repository names one."
        columns={[
          { name: "Status", cell: (c) => <Status of={c.status} /> },
          { name: "Command", wide: true, cell: (c) => <code>{inert(c.command)}</code> },
          { name: "Commit", class: "less", cell: (c) => <code>{c.sha.slice(0, 10)}</code> },
          { name: "Exit", class: "num less", cell: (c) => c.exit_code ?? "–" },
          { name: "Took", class: "num less", cell: (c) => <Took from={c.started_at} to={c.finished_at} /> },
          { name: "Begun", class: "dim end", cell: (c) => <Time at={c.created_at} suffix={false} /> },
        ]}
      />
    </div>
  );
}

function Review(p: { of: PullRequest; findings: List<Finding>; rows: Finding[] }) {
  const id = p.of.id,
    runs = useList<ReviewRun>(id + "runs", (cursor, signal) => reviewStatus({ id, cursor, per_page: 50 }, { signal }));
  useAgain("prs", id, () => void runs.refresh());
  useAgain(
    "tasks",
    (x) => x.row?.pr_id === id,
    () => void runs.refresh(),
  );
  return (
    <>
      <div class="spread">
        <h2>Reviews</h2>
        <div class="acts">
          <Act
            call={reviewRerun}
            input={{ id }}
            disabled={p.of.state !== "open"}
            done={(o) => {
              void runs.load();
              return o.rerun ? "A review of this head begins." : "This head is being reviewed already.";
            }}
          >
            Review again
          </Act>
        </div>
      </div>
      {runs.state.value === "loading" ? (
        <Loading />
      ) : runs.state.value === "failed" ? (
        <Trouble error={new Error(runs.error.value)} again={() => void runs.load()} />
      ) : runs.ids.value.length === 0 ? (
        <Empty>It was not reviewed.</Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Reviews">
          <table class="full narrows">
            <thead>
              <tr>
                <th>Verdict</th>
                <th>Head</th>
                <th>Kept findings</th>
                <th>Model</th>
                <th>Task</th>
                <th>Begun</th>
              </tr>
            </thead>
            <tbody>
              {runs.ids.value
                .map((x) => runs.rows.get(x)!.value)
                .map((r) => (
                  <tr key={r.id}>
                    <td>
                      {verdict(r)}
                      {r.note && <small> {inert(r.note)}</small>}
                    </td>
                    <td>
                      <code>{r.head_sha.slice(0, 10)}</code>
                      {r.since_sha && <small> since {r.since_sha.slice(0, 7)}</small>}
                    </td>
                    <td class="num">
                      {r.findings_kept ?? "–"}
                      {r.more > 0 && <small> and {r.more} more</small>}
                      {r.unlooked > 0 && <small> {r.unlooked} not looked at again</small>}
                    </td>
                    <td>{brain(r)}</td>
                    <td>
                      {r.task_id && (
                        <a href={"/ui/tasks/" + r.task_id}>
                          <code>{r.task_id.slice(0, 8)}</code>
                        </a>
                      )}
                    </td>
                    <td>
                      <Time at={r.created_at} />
                    </td>
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
      )}
      <h2>Findings</h2>
      {p.findings.error.value && (
        <Trouble error={new Error(p.findings.error.value)} again={() => void p.findings.load()} />
      )}
      {p.rows.length === 0
        ? p.findings.state.value === "ready" && <Empty>No finding was kept.</Empty>
        : p.rows.map((f) => <FindingCard key={f.id} of={f} head={p.of.head_sha} done={() => void p.findings.load()} />)}
      <More of={p.findings} />
    </>
  );
}

// Conversation is what people say about it, and what they request.
function Conversation(p: { of: PullRequest; list: List<PullRequestThread>; rows: PullRequestThread[] }) {
  const r = p.of,
    open = r.state === "open",
    again = () => void p.list.load();
  return (
    <>
      <div class="spread">
        <h2>Conversation</h2>
        <div class="acts">
          {open && p.rows.some((t) => t.request_id) && <TakeBack id={r.id} />}
          {open && <RequestChanges id={r.id} head={r.head_sha} done={again} />}
        </div>
      </div>
      {p.list.error.value && <Trouble error={new Error(p.list.error.value)} again={again} />}
      {p.rows.length === 0
        ? p.list.state.value === "ready" && <Empty>Nobody has said anything.</Empty>
        : p.rows.map((t) => <ThreadCard key={t.id} of={t} head={r.head_sha} open={open} done={again} />)}
      <More of={p.list} />
      {open && (
        <>
          <h2>Say something</h2>
          <Say id={r.id} done={again} />
        </>
      )}
    </>
  );
}

function Description(p: { of: PullRequestDetail }) {
  const r = p.of;
  return !r.body.trim() ? (
    <Empty>It has no description.</Empty>
  ) : (
    <>
      <h2>Description</h2>
      <figure class={r.author_kind === "person" ? "" : "agent"}>
        <figcaption>
          {r.author_kind === "person" ? "Written by " + inert(r.author ?? "a person") : "Written by a program"}
        </figcaption>
        <Markdown text={r.body} />
      </figure>
    </>
  );
}
