// One issue: what it says, what triage made of it, and handing it to others.
import { askFile, issueEscalate, issueGet, issueHandoff, type Issue } from "../client.gen";
import { useAgain, useOne } from "../list";
import type { PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Choice, Text } from "../ui/inputs";
import { Markdown, pieces } from "../ui/markdown";
import { Coming, Fact, Facts, Head, Id } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";

const categories = ["needs_decision", "unclear", "sensitive", "needs_access", "out_of_scope"];

export default function IssuePage(p: PageProps) {
  const id = p.params.id!,
    one = useOne<Issue>(id, (signal) => issueGet({ id }, { signal })),
    i = one.value.value,
    again = () => void one.load();
  useAgain("asks", i?.ask_id ?? ((x) => x.row?.source === "issue"), again);
  if (!i)
    return (
      <>
        <Head title="Issue" />
        <Coming of={one} />
      </>
    );
  return (
    <>
      <Head title={inert(i.title)}>
        <Status of={i.state} noun="issue" />
      </Head>
      <Facts>
        <Fact name="Repository">
          <a href={"/ui/repos/" + i.repo}>{i.repo}</a>
          {i.number !== null && "#" + i.number}
        </Fact>
        <Fact name="Triage">{i.triage === "none" ? "not looked at" : words(i.triage)}</Fact>
        {i.ask_id && (
          <Fact name="Ask">
            <a href={"/ui/asks/" + i.ask_id}>open</a>
          </Fact>
        )}
        {i.escalation_id && (
          <Fact name="Escalation">
            <a href={"/ui/escalations/" + i.escalation_id}>open</a>
          </Fact>
        )}
        {i.handoff && (
          <Fact name="Handed off">
            <Status of={i.handoff.state} /> to {inert(i.handoff.webhook_ref)}, <Time at={i.handoff.created_at} />
            {i.handoff.failure && <small> {inert(i.handoff.failure)}</small>}
          </Fact>
        )}
        {i.author && <Fact name="By">{inert(i.author)}</Fact>}
        {i.labels.length > 0 && <Fact name="Labels">{inert(i.labels.join(", "))}</Fact>}
        {i.milestone && <Fact name="Milestone">{inert(i.milestone)}</Fact>}
        <Fact name="Comments">{i.comments}</Fact>
        <Fact name="Opened">
          <Time at={i.created_at} />
        </Fact>
        {i.url && <Fact name="At its host">{pieces(i.url)}</Fact>}
        <Fact name="Id">
          <Id of={i.id} />
        </Fact>
      </Facts>
      {i.body ? <Markdown text={i.body} /> : <p class="empty">It has no text.</p>}
      {["dropped", "escalated", "handed_off"].includes(i.triage) && i.state === "open" && (
        <>
          <h2>Triage it again</h2>
          <Form
            call={askFile}
            submit="File an ask"
            said="Triage begins anew."
            done={again}
            read={(f) => ({ issue_id: id, title: i.title.slice(0, 200), body: String(f.get("wanted") ?? "") })}
          >
            {(wrong) => (
              <Text
                name="wanted"
                field="body"
                label="What is wanted"
                hint="the judge reads this"
                wrong={wrong}
                rows={2}
              />
            )}
          </Form>
        </>
      )}
      <h2>Ask a person</h2>
      <Form
        call={issueEscalate}
        submit="Escalate"
        said="A person is asked."
        done={again}
        read={(f) => ({ id, category: String(f.get("category") ?? ""), reason: String(f.get("reason") ?? "") })}
      >
        {(wrong) => (
          <>
            <Choice name="category" label="What sort of question" wrong={wrong} all={categories} />
            <Text name="reason" label="Why" wrong={wrong} rows={2} />
          </>
        )}
      </Form>
      <h2>Hand it to another system</h2>
      <Form
        call={issueHandoff}
        submit="Hand off"
        said="The delivery is queued."
        done={again}
        read={(f) => ({
          id,
          reason: String(f.get("why") ?? ""),
          webhook_ref: String(f.get("webhook") ?? "") || undefined,
        })}
      >
        {(wrong) => (
          <>
            <Text name="why" field="reason" label="Reason" hint="for those who receive it" wrong={wrong} rows={2} />
            <Text
              name="webhook"
              field="webhook_ref"
              label="Webhook"
              hint="its name; empty for the one of the policy file"
              wrong={wrong}
            />
          </>
        )}
      </Form>
      <Raw call={issueGet} input={{ id }} of={i} />
    </>
  );
}
