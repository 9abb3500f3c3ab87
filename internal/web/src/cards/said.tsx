// What people say about a pull request: threads, answers, and the form that requests changes.
import { useState } from "preact/hooks";
import {
  prComment,
  prResolveThread,
  reviewRequestChanges,
  reviewWithdrawRequest,
  type PullRequestThread,
} from "../client.gen";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { number, of, Text } from "../ui/inputs";
import { Markdown } from "../ui/markdown";
import { Act } from "../ui/parts";
import { hashOf } from "../ui/spot";
import { Status } from "../ui/status";
import { Time } from "../ui/time";
import { Who } from "./who";

// RequestChanges is a button, and the form behind it: the head that was looked at is named.
export function RequestChanges(p: { id: string; head: string; done?: () => void }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" {...gate(reviewRequestChanges, () => setOpen(true))}>
        Request changes
      </button>
      {open && (
        <Dialog title={"Request changes of " + p.head.slice(0, 10)} close={() => setOpen(false)}>
          <Form
            call={reviewRequestChanges}
            submit="Request changes"
            said="Requested. It holds the merge until you approve, or take it back."
            done={() => {
              setOpen(false);
              p.done?.();
            }}
            read={(f) => ({ id: p.id, head_sha: p.head, body: String(f.get("body") ?? "") })}
          >
            {(wrong) => (
              <Text
                name="body"
                label="What is to be changed"
                hint="an agent that looks after the pull request is given your words"
                rows={6}
                wrong={wrong}
                focus
              />
            )}
          </Form>
        </Dialog>
      )}
    </>
  );
}

// TakeBack takes back what the person who looks has requested.
export function TakeBack(p: { id: string }) {
  return (
    <Act call={reviewWithdrawRequest} input={{ id: p.id }} done="It does not hold the merge any more.">
      Take back my request
    </Act>
  );
}

// Say is the form of a new thread.
export function Say(p: { id: string; done: () => void }) {
  return (
    <Form
      call={prComment}
      submit="Comment"
      done={p.done}
      read={(f) => ({ id: p.id, body: String(f.get("body") ?? ""), path: of(f, "path"), line: number(f, "line") })}
    >
      {(wrong) => (
        <>
          <Text name="body" label="Comment" hint="begins no work" rows={3} wrong={wrong} />
          <Text name="path" label="File" hint="of the changes; empty: it is about the whole" wrong={wrong} />
          <Text name="line" label="Line" hint="that the changes show" wrong={wrong} />
        </>
      )}
    </Form>
  );
}

// ThreadCard is a thread. One of the head that is shown leads to its line.
export function ThreadCard(p: { of: PullRequestThread; head: string; open: boolean; done: () => void }) {
  const t = p.of,
    at = t.path && (
      <code>
        {inert(t.path)}
        {t.line && ":" + t.line}
      </code>
    );
  return (
    <article class="finding" id={"t-" + t.id} aria-label={t.path ? "Thread in " + inert(t.path) : "Thread"}>
      <p>
        <Status of={t.state} noun="thread" />{" "}
        {t.path && t.line && (t.head_sha ?? p.head) === p.head ? (
          <a href={`/ui/prs/${t.pr_id}/diff` + hashOf({ path: t.path, line: t.line, old: t.side === "LEFT" })}>{at}</a>
        ) : (
          at
        )}{" "}
        {t.request_id && <b class="bad">requests changes</b>}{" "}
        {t.resolved_sha ? (
          <span class="dim">
            · answered by <code>{t.resolved_sha.slice(0, 10)}</code>
          </span>
        ) : (
          t.resolved_by && (
            <span class="dim">
              · by <Who of={t.resolved_by} />
            </span>
          )
        )}
      </p>
      {t.comments.map((c) => (
        <figure key={c.id}>
          <figcaption>
            <Who of={c.author} /> · <Time at={c.created_at} />
          </figcaption>
          <Markdown text={c.body} />
        </figure>
      ))}
      <div class="acts">
        <Act
          call={prResolveThread}
          input={{ id: t.pr_id, thread_id: t.id, reopen: t.state === "resolved" || undefined }}
          done={() => {
            p.done();
            return t.state === "resolved" ? "Opened again." : "Resolved.";
          }}
        >
          {t.state === "resolved" ? "Open again" : "Resolve"}
        </Act>
      </div>
      {p.open && (
        <details>
          <summary>Answer</summary>
          <Form
            call={prComment}
            submit="Answer"
            said="Said."
            done={p.done}
            read={(f) => ({ id: t.pr_id, thread_id: t.id, body: String(f.get("body") ?? "") })}
          >
            {(wrong) => <Text name="body" label="Answer" rows={3} wrong={wrong} />}
          </Form>
        </details>
      )}
    </article>
  );
}
