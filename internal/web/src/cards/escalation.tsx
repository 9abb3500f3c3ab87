// An escalation: what went wrong that only a person can decide, and the note that ends it.
import { askApprove, askRedrive, escalationResolve, type Escalation } from "../client.gen";
import { Form } from "../ui/form";
import { Who } from "./who";
import { Item } from "./item";
import { inert } from "../ui/ansi";
import { Text } from "../ui/inputs";
import { Markdown } from "../ui/markdown";
import { Act } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";

// approvable are the reasons for which an ask of a run waits for a person's approval.
export const approvable = ["other_repository", "more_rights", "strangers_text", "chain_too_long"];

export function EscalationCard(p: { of: Escalation; done?: () => void }) {
  const e = p.of;
  return (
    <Item id={e.id} tall>
      <div>
        <p>
          <strong>
            <a href={"/ui/escalations/" + e.id}>{inert(e.title)}</a>
          </strong>
        </p>
        <p class="dim">
          {words(e.category)}
          {e.reason && " · " + inert(words(e.reason))}
          {e.repo && (
            <>
              {" "}
              · <a href={"/ui/repos/" + e.repo}>{e.repo}</a>
            </>
          )}{" "}
          · <Time at={e.created_at} />
          {e.task_id && (
            <>
              {" "}
              · <a href={"/ui/tasks/" + e.task_id}>task</a>
            </>
          )}
          {e.pr_id && (
            <>
              {" "}
              · <a href={"/ui/prs/" + e.pr_id}>pull request</a>
            </>
          )}
          {e.issue_id && (
            <>
              {" "}
              · <a href={"/ui/issues/" + e.issue_id}>issue</a>
            </>
          )}
          {e.ask_id && (
            <>
              {" "}
              · <a href={"/ui/asks/" + e.ask_id}>ask</a>
            </>
          )}
        </p>
        {e.body &&
          (e.created_by.startsWith("user:") ? (
            <Markdown text={e.body} />
          ) : (
            <figure class="agent">
              <figcaption>Written by a program</figcaption>
              <Markdown text={e.body} />
            </figure>
          ))}
      </div>
      {e.resolved_at ? (
        <p>
          <Status of="resolved" /> <Time at={e.resolved_at} />
          {e.resolved_by && (
            <>
              {" "}
              by <Who of={e.resolved_by} />
            </>
          )}{" "}
          {e.note && <span>{inert(e.note)}</span>}
        </p>
      ) : (
        <Form
          call={escalationResolve}
          submit="Resolve"
          said="Resolved."
          done={p.done}
          read={(form) => ({ id: e.id, note: String(form.get("note") ?? "") || undefined })}
          also={
            e.ask_id && approvable.includes(e.category) ? (
              <Act call={askApprove} input={{ askId: e.ask_id }} done="The judge looks at it, as asked for by you.">
                Approve
              </Act>
            ) : e.ask_id && e.category === "judge_unavailable" ? (
              <Act call={askRedrive} input={{ askId: e.ask_id }} done="The judge looks again.">
                Ask the judge again
              </Act>
            ) : null
          }
        >
          {(wrong) => <Text name="note" label="Note" hint="what you decided" wrong={wrong} />}
        </Form>
      )}
    </Item>
  );
}
