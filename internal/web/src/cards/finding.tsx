// A finding of a review, and how it is dismissed.
import { reviewDismiss, type Finding } from "../client.gen";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Switch, Text } from "../ui/inputs";
import { Markdown, pieces } from "../ui/markdown";
import { hashOf } from "../ui/spot";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";
import { placeOfFile } from "./source";

// Of the head that is shown, it leads to its line among the changes; of another head, to the
// file as it was there. What is of the side before the change has no line in that.
export function FindingCard(p: { of: Finding; full: string; head: string; done: () => void }) {
  const f = p.of,
    open = f.state === "posted" || f.state === "answered",
    at = (
      <code>
        {inert(f.file)}:{f.start_line ? f.start_line + "–" : ""}
        {f.line}
      </code>
    );
  return (
    <article class="finding" id={"f-" + f.id} aria-label={"Finding in " + inert(f.file)}>
      <p>
        <Status of={f.severity} say={`${f.severity} ${words(f.kind)}`} />{" "}
        {f.head_sha === p.head ? (
          <a href={`/ui/prs/${f.pr_id}/diff` + hashOf({ path: f.file, line: f.line, old: f.side === "LEFT" })}>{at}</a>
        ) : f.side === "RIGHT" ? (
          <a href={placeOfFile(p.full, f.head_sha, f.file, f.start_line ?? f.line, f.line)}>{at}</a>
        ) : (
          at
        )}{" "}
        {f.holds_merge && open && <b class="bad">holds the merge</b>}{" "}
        <span class="dim">
          · {words(f.state)} · <Time at={f.updated_at} />
        </span>
      </p>
      <figure class="agent">
        <figcaption>Written by a program</figcaption>
        <p>
          <strong>{pieces(f.claim)}</strong>
        </p>
        <Markdown text={f.why} />
        {f.how_to_see && <p>To see it: {pieces(f.how_to_see)}</p>}
        {f.evidence && <p>Tried: {pieces(f.evidence)}</p>}
        {f.suggestion !== null && <pre tabIndex={0}>{inert(f.suggestion)}</pre>}
      </figure>
      {open && (
        <details>
          <summary>Dismiss</summary>
          <Form
            call={reviewDismiss}
            submit="Dismiss"
            said="Dismissed."
            done={p.done}
            read={(form) => ({
              id: f.id,
              reason: String(form.get("reason") ?? "") || undefined,
              rule: form.has("rule") || undefined,
            })}
          >
            {(wrong) => (
              <>
                <Text name="reason" label="Reason" hint="why it does not count" wrong={wrong} />
                <Switch name="rule">
                  It is none at all: reviews do not name it there again in the repository. Without this it is dropped in
                  this pull request alone.
                </Switch>
              </>
            )}
          </Form>
        </details>
      )}
    </article>
  );
}
