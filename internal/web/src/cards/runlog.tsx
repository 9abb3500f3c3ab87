// The transcript of a run as it comes, and a word to its agent.
import { useEffect, useMemo, useRef } from "preact/hooks";
import { keep } from "../api";
import { sessionMessage, taskRunTail } from "../client.gen";
import { follow } from "../sse";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Text } from "../ui/inputs";
import { Status } from "../ui/status";
import { tell } from "../ui/toast";
import { fates, Transcript } from "../ui/transcript";
import { Talk, useTail } from "./talk";

// RunLog is the transcript of a run, as it comes.
export function RunLog(p: { run: string; live: boolean }) {
  const lines = useMemo(() => new Transcript(), [p.run]),
    url = taskRunTail({ runId: p.run }),
    tail = useTail(url, (text) => lines.event(JSON.parse(text)));
  useEffect(() => {
    if (tail.state === "ended") lines.over();
  }, [tail.state]);
  const download = () => {
    const last = tail.last();
    if (last) void save(url, parseInt(last, 10), `run-${p.run.slice(0, 8)}.jsonl`);
  };
  return (
    <Talk
      lines={lines}
      of="run"
      tail={tail}
      controls={
        <button type="button" onClick={download}>
          Download
        </button>
      }
    >
      <Said lines={lines} />
      {p.live && <Message run={p.run} lines={lines} />}
    </Talk>
  );
}

// save has the browser keep the events of a run up to a number, one a line.
async function save(url: string, last: number, name: string) {
  const all: string[] = [],
    off = new AbortController();
  await follow(
    url,
    (batch) => {
      for (const f of batch) {
        if (f.event === "event" && Number(f.id) <= last) all.push(f.data + "\n");
        if (f.event === "end" || Number(f.id) >= last) off.abort();
      }
    },
    off.signal,
    {
      resume: true,
      ended: (b) => b.some((f) => f.event === "end"),
      state: (s, why) => {
        if (s === "refused" && why) tell(why);
      },
    },
  );
  if (all.length) keep(new Blob(all, { type: "application/jsonl" }), name);
}

// Said is what was said to the agent from here, and what became of it. What no box has
// confirmed stands nowhere else.
function Said(p: { lines: Transcript }) {
  void p.lines.version.value;
  const all = [...p.lines.messages.values()].filter((m) => m.own);
  return (
    <div role="status" aria-label="Messages">
      {all.map((m) => (
        <p key={m.id}>
          <Status of={m.state} /> “{inert(m.text)}” <span class="dim">{m.reply ? inert(m.reply) : fates[m.state]}</span>
        </p>
      ))}
    </div>
  );
}

function Message(p: { run: string; lines: Transcript }) {
  const text = useRef("");
  return (
    <Form
      call={sessionMessage}
      submit="Send"
      read={(f) => ({ runId: p.run, message: (text.current = String(f.get("message") ?? "")), wait_ms: 0 })}
      done={(o) => p.lines.sent(o.message_id, text.current)}
    >
      {(wrong) => <Text name="message" label="A word to the agent" wrong={wrong} />}
    </Form>
  );
}
