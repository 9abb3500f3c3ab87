// A blocker: what the agent asks, and the form that answers it. What is sent cannot be
// read back.
import { blockerAnswer, blockerSubmit, blockerWithdraw, type Blocker, type BlockerFormField } from "../client.gen";
import { NamedTask } from "./named";
import { Markdown } from "../ui/markdown";
import { Item } from "./item";
import { inert } from "../ui/ansi";
import { Field, Form } from "../ui/form";
import { Text } from "../ui/inputs";
import { Act, copy } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";
import { table } from "../own";

const ends: Record<string, string> = table({
  woken: "The run goes on.",
  released: "The task is queued again.",
  filed: "An ask was filed.",
  recorded: "Recorded.",
});

export function BlockerCard(p: { of: Blocker }) {
  const b = p.of,
    fields = b.form?.fields ?? [];
  const fills = fields.some((f) => !f.landed && f.submittable),
    answers = b.kind === "decision" || fields.length === 0 || fields.some((f) => !f.submittable);
  const also = (
    <>
      {b.fix_url && (
        <button type="button" onClick={() => copy(b.fix_url!)}>
          Copy a link for somebody else
        </button>
      )}
      <Act
        call={blockerWithdraw}
        input={{ blockerId: b.id }}
        confirm="Withdraw the question? The task goes on without an answer."
        done={(o) => "Withdrawn. " + (ends[o.kind] ?? "")}
      >
        Withdraw
      </Act>
    </>
  );
  return (
    <Item id={b.id} tall>
      <div>
        <p>
          {words(b.kind)} for{" "}
          <strong>
            <NamedTask id={b.task_id} />
          </strong>
        </p>
        <p class="dim">
          <a href={"/ui/repos/" + b.repo}>{b.repo}</a> · asked <Time at={b.created_at} />
        </p>
        <figure class="agent">
          <figcaption>Written by a program</figcaption>
          <Markdown text={b.question} />
        </figure>
      </div>
      {b.state !== "open" ? (
        <Status of={b.state} noun="blocker" />
      ) : (
        <>
          {fills && (
            <Form
              call={blockerSubmit}
              submit="Submit"
              said="Kept. It cannot be read back."
              read={(form) => ({ blockerId: b.id, fields: values(form, fields) })}
              also={answers ? undefined : also}
            >
              {(wrong) => fields.map((f) => <One key={f.name} field={f} wrong={wrong} />)}
            </Form>
          )}
          {answers && (
            <Form
              call={blockerAnswer}
              submit="Answer"
              said="Answered."
              read={(form) => ({ blockerId: b.id, answer: String(form.get("answer") ?? "") })}
              also={also}
            >
              {(wrong) => (
                <Text
                  name="answer"
                  label="Answer"
                  hint="Say where a credential is, never the credential."
                  wrong={wrong}
                  rows={3}
                />
              )}
            </Form>
          )}
          {!fills && !answers && <div class="acts">{also}</div>}
        </>
      )}
    </Item>
  );
}

// values are the fields that were filled in.
function values(form: FormData, fields: BlockerFormField[]): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const f of fields) {
    const v = form.get(f.name);
    if (typeof v === "string" && v) out[f.name] = v;
  }
  return out;
}

function One(p: { field: BlockerFormField; wrong: (field: string) => string[] | undefined }) {
  const f = p.field,
    label = inert(f.name),
    hint = f.description ? inert(f.description) : undefined,
    at = "fields." + f.name;
  if (f.landed || !f.submittable)
    return (
      <Field label={label} hint={hint} error={p.wrong(at)}>
        {() => (f.landed ? <Status of="done" say="kept" /> : <span class="dim">Connect it, then answer.</span>)}
      </Field>
    );
  const of = { name: f.name, field: at, label, hint, wrong: p.wrong };
  return f.kind === "mcp_server" ? (
    <Text {...of} rows={3} code />
  ) : (
    <Text {...of} type={f.kind === "service_url" ? "url" : "password"} />
  );
}
