// One task: what it is, why it waits, what its agent does, what came of it.
import { prGet, taskRunStatus, type PullRequest, type TaskDetail } from "../client.gen";
import { Attempts, Runs } from "../cards/attempts";
import { Compare } from "../cards/compare";
import { Deeds } from "../cards/deeds";
import { Failure } from "../cards/failure";
import { Graph } from "../cards/graph";
import { Hold } from "../cards/hold";
import { Named, NamedAsk, NamedBox } from "../cards/named";
import { Report } from "../cards/report";
import { Timeline } from "../cards/timeline";
import { Who } from "../cards/who";
import { useOne } from "../list";
import { query, setQuery, type PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Markdown } from "../ui/markdown";
import { usd } from "../ui/money";
import { Coming, Fact, Facts, Head, Id, Meter, Tabs } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";
import { Changes } from "./changes";

export default function TaskPage(p: PageProps) {
  const id = p.params.id!;
  const one = useOne<TaskDetail>(id, (signal) => taskRunStatus({ id }, { signal }), {
    topic: "tasks",
    id,
    changed: (was, row) => was.run_id !== row.run_id || was.status !== row.status,
  });
  const t = one.value.value,
    tab = query().get("tab") ?? "run";
  if (!t)
    return (
      <>
        <Head title="Task" />
        <Coming of={one} />
      </>
    );
  const reserved = Number(t.budget.reserved ?? 0) > 0 ? `, ${usd(t.budget.reserved)} more reserved` : "";
  return (
    <div class={tab === "run" ? "room" : undefined}>
      <Head title={inert(t.title)}>
        <Status of={t.status} />
        {t.stuck && <b class="bad">stuck</b>}
        <span class="grow" />
        <Deeds of={t} />
      </Head>
      <Facts>
        <Fact name="Repository">
          <a href={"/ui/repos/" + t.repo}>{t.repo}</a>
        </Fact>
        <Fact name="Branch">
          <code>{t.branch}</code>
        </Fact>
        <Fact name="Attempt">
          {t.attempt} of {t.max_attempts}
        </Fact>
        <Fact name="Kind">{t.kind}</Fact>
        <Fact name="Cost">
          {t.budget.usd !== null ? (
            <Meter
              value={Number(t.budget.spent ?? 0)}
              max={Number(t.budget.usd)}
              label={`${usd(t.budget.spent)} of ${usd(t.budget.usd)}${reserved}`}
            />
          ) : (
            usd(t.budget.spent) + reserved
          )}
        </Fact>
        {t.queue_position !== null && (
          <Fact name="Queue">
            place {t.queue_position} of {t.queue_depth}
          </Fact>
        )}
        {t.box_id && (
          <Fact name="Box">
            <NamedBox id={t.box_id} />
          </Fact>
        )}
        {t.plan && (
          <Fact name="Plan">
            <a href={"/ui/plans/" + t.plan.id}>{inert(t.plan.title)}</a>
          </Fact>
        )}
        {t.pr_id && (
          <Fact name="Pull request">
            <Named
              id={t.pr_id}
              href={"/ui/prs/" + t.pr_id}
              get={prGet}
              read={() => prGet({ id: t.pr_id! })}
              name={(x) => (x.number ? "#" + x.number : words(x.state))}
            />
          </Fact>
        )}
        {t.ask_id && (
          <Fact name="Ask">
            <NamedAsk id={t.ask_id} />
          </Fact>
        )}
        <Fact name="Artifacts">
          <a href={"/ui/artifacts?task=" + t.id}>what it stored</a>
        </Fact>
        <Fact name="Filed">
          <Time at={t.created_at} /> by <Who of={t.created_by} />
        </Fact>
        <Fact name="Id">
          <Id of={t.id} />
        </Fact>
      </Facts>
      {t.holds.map((h) => (
        <Hold key={h.reason} of={h} />
      ))}
      <Failure of={t} />
      <Timeline id={id} />
      <Tabs
        label="Parts of the task"
        all={["run", "report", "task", ...(t.pr_id ? ["changes"] : []), "attempts", "graph", "raw"]}
        at={tab}
        to={(s) => setQuery({ tab: s === "run" ? "" : s, run: "" })}
      />
      {tab === "report" ? (
        <Report task={id} />
      ) : tab === "task" ? (
        <What of={t} />
      ) : tab === "changes" && t.pr_id ? (
        <Diff pr={t.pr_id} />
      ) : tab === "attempts" ? (
        <>
          <Attempts id={id} />
          <Compare id={id} />
        </>
      ) : tab === "graph" ? (
        <Graph of={t} />
      ) : tab === "raw" ? (
        <Raw call={taskRunStatus} input={{ id }} of={t} open />
      ) : (
        <Runs of={t} />
      )}
    </div>
  );
}

function What(p: { of: TaskDetail }) {
  const t = p.of;
  return (
    <>
      <h2>What to do</h2>
      <Markdown text={t.problem} />
      {t.guidance && (
        <>
          <h2>Guidance</h2>
          <Markdown text={t.guidance} />
        </>
      )}
      {t.files.length > 0 && (
        <>
          <h2>Files</h2>
          <ul>
            {t.files.map((f) => (
              <li key={f}>
                <code>{inert(f)}</code>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

// Diff shows the changes of the task's pull request.
function Diff(p: { pr: string }) {
  const one = useOne<PullRequest>(p.pr, (signal) => prGet({ id: p.pr }, { signal }), { topic: "prs", id: p.pr });
  const pr = one.value.value;
  if (!pr) return <Coming of={one} />;
  return <Changes pr={pr} findings={[]} threads={[]} looked={() => {}} />;
}
