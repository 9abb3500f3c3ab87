// One pull request: the decision that it waits for, what it changes, its checks, what
// reviews found, the report of the agent.
import { useLayoutEffect, useState } from "preact/hooks";
import {
  prAskAgain,
  prComments,
  prGet,
  prMerge,
  prRearmBabysit,
  prUnapprove,
  reviewFindings,
  type Finding,
  type PullRequest,
  type PullRequestDetail,
  type PullRequestThread,
} from "../client.gen";
import { PullState } from "../cards/pullstate";
import { ApprovalCard, broughtBack } from "../cards/approval";
import { Arm } from "../cards/arm";
import { decide } from "../cards/decide";
import { Provenance } from "../cards/provenance";
import { Report } from "../cards/report";
import { RequestChanges, Say, TakeBack, ThreadCard } from "../cards/said";
import { LeftOut } from "../cards/leftout";
import { Unwanted } from "../cards/unwanted";
import { useAgain, useList, useOne, type List } from "../list";
import { go, here, query, setQuery, type PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { gate } from "../ui/gate";
import { useKeys } from "../ui/keys";
import { Markdown } from "../ui/markdown";
import { Act, Coming, Empty, Head, Loading, More, Tabs, Trouble } from "../ui/parts";
import { Raw } from "../ui/raw";
import { words } from "../ui/status";
import { Time } from "../ui/time";
import { Changes } from "./changes";
import { About } from "../cards/pullfacts";
import { Checks, Review } from "../cards/pullreviews";

const tabs = ["changes", "conversation", "description", "checks", "review", "report", "provenance", "raw"] as const;

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
        all={r.state === "merged" || tab === "provenance" ? tabs : tabs.filter((t) => t !== "provenance")}
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
      ) : tab === "provenance" ? (
        <Provenance pr={id} />
      ) : tab === "raw" ? (
        <Raw call={prGet} input={{ id }} of={r} open />
      ) : (
        <Changes pr={r} findings={rows} threads={said} looked={setLooked} />
      )}
    </div>
  );
}

// Actions are what a person may do whether asked or not.
function Actions(p: { of: PullRequest }) {
  const r = p.of,
    [arm, setArm] = useState(false),
    head = r.head_sha;
  if (r.state !== "open") return null;
  const asked = r.pending_action?.state === "pending" && r.pending_action.kind === "merge",
    going = r.pending_action?.state === "approved",
    begins = r.pending_action?.begins_at;
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
      {going && begins && Date.parse(begins) > Date.now() && (
        <span>
          The merge begins <Time at={begins} />.
        </span>
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
