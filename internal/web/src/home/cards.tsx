// Cards of what waits for a person that no other page shows as one.
import {
  planApprove,
  prAskAgain,
  prMerge,
  taskCancel,
  taskRedispatch,
  type Escalation,
  type Plan,
  type PullRequest,
  type Task,
} from "../client.gen";
import { ApprovalCard } from "../cards/approval";
import { Arm } from "../cards/arm";
import { BlockerCard } from "../cards/blocker";
import { cancelled, cancels } from "../cards/can";
import { EscalationCard } from "../cards/escalation";
import { Hold, Until } from "../cards/hold";
import { Item } from "../cards/item";
import { inert } from "../ui/ansi";
import { many, usd } from "../ui/money";
import { Act } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";
import type { Wait } from "./waiting";

export function WaitCard(p: { of: Wait }) {
  const w = p.of;
  switch (w.noun) {
    case "approval":
      return <ApprovalCard of={w.of} />;
    case "blocker":
      return <BlockerCard of={w.of} />;
    case "escalation":
      return <EscalationCard of={w.of} />;
    case "plan":
      return <PlanCard of={w.of} />;
    case "pull":
      return <PullCard of={w.of} asked={w.asked} />;
    case "task":
      return <HeldCard of={w.of} />;
  }
}

function PlanCard(p: { of: Plan }) {
  const x = p.of;
  return (
    <Item id={x.id}>
      <div>
        <p>
          Plan:{" "}
          <strong>
            <a href={"/ui/plans/" + x.id}>{inert(x.title)}</a>
          </strong>
        </p>
        <p class="dim">
          {x.repos.join(", ")} · {many(x.total, "pull request")} · filed <Time at={x.created_at} />
        </p>
      </div>
      <div class="acts">
        <a class="button" href={"/ui/plans/" + x.id}>
          See what it starts
        </a>
        <Act call={planApprove} input={{ planId: x.id }} does="main" class="main" done="Approved. It begins.">
          Approve
        </Act>
      </div>
    </Item>
  );
}

export function PullCard(p: { of: PullRequest; asked: Escalation[] }) {
  const r = p.of,
    need = r.needs_person!,
    where = `${r.repo}#${r.number}`,
    input = { id: r.id, head_sha: r.head_sha };
  const clear = need.capability ? { capability: need.capability, args: need.args } : undefined,
    arm = need.capability === "pr.rearm_babysit";
  return (
    <Item id={r.id} tall={arm}>
      <div>
        <p>
          {words(need.why)}:{" "}
          <strong>
            <a href={"/ui/prs/" + r.id}>{inert(r.title)}</a>
          </strong>
        </p>
        <p class="dim">
          {where} · head <code>{r.head_sha.slice(0, 10)}</code> · since <Time at={need.since} suffix={false} />
        </p>
        <p>
          It waits <Until text={need.clears_when} clear={clear ?? null} />.
        </p>
        {p.asked.map((e) => (
          <p key={e.id}>
            <a href={"/ui/escalations/" + e.id}>{inert(e.title)}</a>: {inert(words(e.reason))}
          </p>
        ))}
      </div>
      {arm ? (
        <Arm id={r.id} />
      ) : (
        <div class="acts">
          {need.capability === "pr.ask_again" && (
            <Act call={prAskAgain} input={input} does="main" class="main" done={`Asked again: ${where}.`}>
              Ask again
            </Act>
          )}
          {need.capability === "pr.merge" && (
            <Act call={prMerge} input={input} does="main" class="main" done={`${where} is to be merged.`}>
              Merge
            </Act>
          )}
          {r.task_id && ["pr.ask_again", "pr.merge"].includes(need.capability ?? "") && (
            <Act call={taskCancel} input={{ id: r.task_id }} confirm={cancels(r.id)} done={cancelled} class="danger">
              Cancel the task
            </Act>
          )}
        </div>
      )}
    </Item>
  );
}

function HeldCard(p: { of: Task }) {
  const t = p.of;
  return (
    <Item id={t.id}>
      <div>
        <p>
          <strong>
            <a href={"/ui/tasks/" + t.id}>{inert(t.title)}</a>
          </strong>
        </p>
        <p class="dim">
          {t.repo} · attempt {t.attempt}
          {t.budget.spent !== null && ` · ${usd(t.budget.spent)}`}
          {t.budget.usd !== null && ` of a budget of ${usd(t.budget.usd)}`}
        </p>
        {t.failure && <p>{inert(t.failure)}</p>}
        {t.holds.map((h) => (
          <Hold key={h.reason} of={h} bare={h.clear?.capability === "task.redispatch"} />
        ))}
      </div>
      <div class="acts">
        <Status of={t.status} />
        {!t.holds.some((h) => h.clear && h.clear.capability !== "task.redispatch") && (
          <Act call={taskRedispatch} input={{ id: t.id }} does="main" class="main" done="Queued again.">
            Try again
          </Act>
        )}
      </div>
    </Item>
  );
}
