// What the lists of tasks and of pull requests show beside them of the marked row. It is
// what the row has: going through a list asks the server for nothing.
import type { PullRequest, Task } from "../client.gen";
import { doing } from "./board";
import { Failure } from "./failure";
import { Hold } from "./hold";
import { PullState } from "./pullstate";
import { repair } from "./repair";
import { Reviewed } from "./reviewed";
import { Steps } from "./steps";
import { inert } from "../ui/ansi";
import { Markdown } from "../ui/markdown";
import { usd } from "../ui/money";
import { Counts, Fact, Facts } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";

export function TaskPane(p: { of: Task }) {
  const t = p.of,
    now = !t.holds.length && doing(t);
  return (
    <>
      <h2>{inert(t.title)}</h2>
      <p>
        <Status of={t.status} />
        {t.stuck && <b class="bad"> stuck</b>}
        {now && <span class="dim"> · {now}</span>}
      </p>
      {t.holds.map((h) => (
        <Hold key={h.reason} of={h} />
      ))}
      <Failure of={t} />
      <Facts>
        <Fact name="Repository">
          <a href={"/ui/repos/" + t.repo}>{t.repo}</a>
        </Fact>
        <Fact name="Branch">
          <code>{inert(t.branch)}</code>
        </Fact>
        <Fact name="Attempt">
          {t.attempt} of {t.max_attempts}
        </Fact>
        <Fact name="Cost">
          {usd(t.budget.spent)}
          {t.budget.usd !== null && " of " + usd(t.budget.usd)}
        </Fact>
        <Fact name="Filed">
          <Time at={t.created_at} />
        </Fact>
      </Facts>
      {t.pr_id && (
        <p>
          <a href={"/ui/prs/" + t.pr_id}>Its pull request</a>
        </p>
      )}
      <Steps key={t.id} id={t.id} />
      <h3>What to do</h3>
      <Markdown text={t.problem} />
      {t.guidance && (
        <>
          <h3>Guidance</h3>
          <Markdown text={t.guidance} />
        </>
      )}
    </>
  );
}

export function PullPane(p: { of: PullRequest }) {
  const x = p.of,
    mend = repair(x);
  return (
    <>
      <h2>{inert(x.title)}</h2>
      <p>
        <PullState of={x} />
        {x.needs_person && (
          <>
            {" "}
            <Status of="needs_person" say={words(x.needs_person.why)} />
          </>
        )}
      </p>
      <Facts>
        <Fact name="Repository">
          <a href={"/ui/repos/" + x.repo}>{x.repo}</a>
          {x.number ? " #" + x.number : ""}
        </Fact>
        <Fact name="Branch">
          <code>{inert(x.head_ref)}</code> into <code>{inert(x.base_ref)}</code>
        </Fact>
        <Fact name="Checks">
          <Status of={x.checks} noun="checks" />
        </Fact>
        <Fact name="Review">
          <Reviewed of={x.review} />
        </Fact>
        {mend && <Fact name="Repair">{mend}</Fact>}
        {x.size && (
          <Fact name="Lines">
            <Counts of={x.size} />
          </Fact>
        )}
        <Fact name="Opened">
          <Time at={x.created_at} />
        </Fact>
      </Facts>
      <p>
        <a href={`/ui/prs/${x.id}/diff`}>Its changes</a>
        {x.task_id && (
          <>
            {" · "}
            <a href={"/ui/tasks/" + x.task_id}>Its task</a>
          </>
        )}
      </p>
    </>
  );
}
