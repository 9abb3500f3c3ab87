// One ask: what was asked, by whom, and what triage made of it.
import { askApprove, askGet, askRedrive, escalationList, type Ask } from "../client.gen";
import { approvable } from "../cards/escalation";
import { Who } from "../cards/who";
import { NamedTask } from "../cards/named";
import { useOne } from "../list";
import type { PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Markdown } from "../ui/markdown";
import { Act, Coming, Empty, Fact, Facts, Head, Id } from "../ui/parts";
import { Raw } from "../ui/raw";
import { waits } from "../ui/say";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";

export default function AskPage(p: PageProps) {
  const id = p.params.id!;
  const one = useOne<Ask>(id, (signal) => askGet({ askId: id }, { signal }), { topic: "asks", id });
  const a = one.value.value;
  if (!a)
    return (
      <>
        <Head title="Ask" />
        <Coming of={one} />
      </>
    );
  return (
    <>
      <Head title={inert(a.title)}>
        <Status of={a.state === "triaged" ? "became_tasks" : a.state} say={a.state} />
        <span class="grow" />
        {a.state === "escalated" && a.escalation_reason === "judge_unavailable" && (
          <Act call={askRedrive} input={{ askId: id }} done="The judge looks again.">
            Ask the judge again
          </Act>
        )}
        {a.state === "escalated" && approvable.includes(a.escalation_reason ?? "") && (
          <Act call={askApprove} input={{ askId: id }} done="The judge looks at it, as asked for by you.">
            Approve
          </Act>
        )}
      </Head>
      <Facts>
        <Fact name="Repository">{a.repo ? <a href={"/ui/repos/" + a.repo}>{a.repo}</a> : "any"}</Fact>
        <Fact name="From">{inert(a.source)}</Fact>
        <Fact name="Asked">
          <Time at={a.created_at} /> by <Who of={a.filed_by} />
          {a.count > 1 && (
            <small>
              {" "}
              {a.count} times, last <Time at={a.last_seen_at} />
            </small>
          )}
        </Fact>
        {a.triaged_at && (
          <Fact name="Decided">
            <Time at={a.triaged_at} />
          </Fact>
        )}
        {Object.entries(a.labels).map(([k, v]) => (
          <Fact key={k} name={inert(k)}>
            {inert(v)}
          </Fact>
        ))}
        <Fact name="Id">
          <Id of={a.id} />
        </Fact>
      </Facts>
      {a.hold && (
        <p class="hold">
          <strong>{waits(a.hold.reason)}</strong>{" "}
          <span class="dim">
            since <Time at={a.hold.since} suffix={false} />
          </span>{" "}
          {a.hold.clears_when}
        </p>
      )}
      <h2>What became of it</h2>
      <Verdict of={a} />
      <h2>What was asked</h2>
      <Markdown text={a.body} />
      <Raw call={askGet} input={{ askId: id }} of={a} />
    </>
  );
}

function Verdict(p: { of: Ask }) {
  const a = p.of,
    v = a.verdict;
  if (!v)
    return (
      <Empty>
        {a.state === "pending"
          ? "Triage has not decided yet."
          : a.escalation_reason
            ? inert(a.escalation_reason)
            : "Nothing yet."}
      </Empty>
    );
  const task = (id: string, i = 0) => (
    <>
      {i > 0 && ", "}
      <NamedTask id={id} />
    </>
  );
  return (
    <>
      <p>
        {v.kind === "minted" ? (
          <>
            It became {v.task_ids.length === 1 ? "the task" : "the tasks"} {v.task_ids.map(task)}
          </>
        ) : v.kind === "planned" ? (
          <>
            It became {v.plan_id ? <a href={"/ui/plans/" + v.plan_id}>a plan</a> : "a plan"} {v.task_ids.map(task)}
          </>
        ) : v.kind === "cross_linked" ? (
          <>It is covered by {v.task_ids.map(task)}</>
        ) : v.kind === "dropped" ? (
          <>It was dropped{v.covering_task_id && <>: it is covered by {task(v.covering_task_id)}</>}.</>
        ) : (
          <Escalated of={a} />
        )}
      </p>
      {v.reason && (
        <figure class="agent">
          <figcaption>Written by a program</figcaption>
          <Markdown text={v.reason} />
        </figure>
      )}
    </>
  );
}

// Escalated says what became of the question to a person that an ask led to. Unless a person
// approves the ask, or gives it back to the judge, what is decided starts nothing by itself.
function Escalated(p: { of: Ask }) {
  const a = p.of,
    one = useOne(a.id, (signal) => escalationList({ filter: ["ask:" + a.id], per_page: 1 }, { signal }), {
      counts: ["escalations"],
    }),
    e = one.value.value?.data[0];
  const why = a.escalation_reason && <>: {inert(words(a.escalation_reason))}</>;
  if (!e) return <>It was given to a person{why}.</>;
  if (!e.resolved_at)
    return (
      <>
        It needs a person{why}. <a href={"/ui/escalations/" + e.id}>Decide</a>
      </>
    );
  return (
    <>
      It was given to a person{why}. <a href={"/ui/escalations/" + e.id}>Resolved</a> <Time at={e.resolved_at} />
      {e.resolved_by && (
        <>
          {" "}
          by <Who of={e.resolved_by} />
        </>
      )}
      {e.note && <>: {inert(e.note)}</>}
    </>
  );
}
