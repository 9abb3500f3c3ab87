// Many does one thing to many tasks, one call each, and says which were refused and why.
import { useState } from "preact/hooks";
import { Problem, said, uuid, type Call } from "../api";
import { taskCancel, taskReassign, taskRedispatch, type Task } from "../client.gen";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { gate } from "../ui/gate";
import { many } from "../ui/money";
import { ask } from "../ui/parts";
import type { Picked } from "../ui/table";

type Answer = { kind?: string; reassigned?: boolean; status?: string };
type Deed = {
  name: string;
  did: string;
  call: Call<any, Answer>;
  asks?: (n: string) => string;
  none?: (out: Answer) => string | undefined; // why an answer means that nothing was done
};

const deeds: Deed[] = [
  {
    name: "Cancel",
    did: "cancelled",
    call: taskCancel,
    asks: (n) =>
      `Cancel ${n}? They are not begun again, and tasks that depend on them fail. Their pull requests are closed, unless a policy keeps them.`,
    none: (o) => (o.kind === "already_terminal" ? "It was over already." : undefined),
  },
  {
    name: "Reassign",
    did: "queued again",
    call: taskReassign,
    asks: (n) => `Take ${n} from their boxes and queue them again?`,
    none: (o) => (o.reassigned === false ? "No box had it." : undefined),
  },
  { name: "Redispatch", did: "queued again", call: taskRedispatch },
];

// patient calls once, and waits where the server says to.
async function patient(call: Call<any, Answer>, input: object): Promise<Answer> {
  const key = uuid();
  for (;;) {
    try {
      return await call(input, { key });
    } catch (e) {
      if (!(e instanceof Problem) || !e.later) throw e;
      await new Promise((go) => setTimeout(go, 1000 * Math.max(1, e.after)));
    }
  }
}

type Tally = { did: string; done: number; of: number; refused: { id: string; title: string; why: string }[] };

// Many is the bar above a list of tasks while some are selected, and what became of them.
export function Many(p: Picked<Task>) {
  const [tally, setTally] = useState<Tally>(),
    [busy, setBusy] = useState(false),
    [guiding, setGuiding] = useState<Deed>();
  const n = p.rows.length;
  const run = async (deed: Deed, more: object = {}) => {
    const rows = p.rows,
      now: Tally = { did: deed.did, done: 0, of: rows.length, refused: [] };
    setBusy(true);
    for (const row of rows) {
      setTally({ ...now });
      let why: string | undefined;
      try {
        const out = await patient(deed.call, { id: row.id, ...more });
        why = deed.none?.(out);
      } catch (e) {
        why = said(e);
      }
      if (why) now.refused = [...now.refused, { id: row.id, title: row.title, why }];
      else now.done++;
    }
    setTally(now);
    setBusy(false);
    p.keep(now.refused.map((r) => r.id));
  };
  const begin = async (d: Deed) => {
    if (!d.asks) setGuiding(d);
    else if (await ask(d.asks(many(n, "task")), `${d.name} ${many(n, "task")}`)) void run(d);
  };
  if (!n && !tally) return null;
  return (
    <div class="many" role="group" aria-label="Selected tasks">
      {n > 0 && (
        <div class="tools">
          <b role="status">{n} selected</b>
          {deeds.map((d) => (
            <button key={d.name} type="button" disabled={busy} {...gate(d.call, () => void begin(d))}>
              {d.name} {n}
            </button>
          ))}
          <button type="button" class="plain" disabled={busy} onClick={() => p.keep([])}>
            Select none <kbd>Esc</kbd>
          </button>
        </div>
      )}
      {tally && (
        <div class="tally" role="status">
          <p>
            {busy
              ? `${tally.done + tally.refused.length} of ${tally.of}…`
              : `${tally.done} of ${tally.of} ${tally.did}${tally.refused.length ? `, ${tally.refused.length} not:` : "."}`}{" "}
            {!busy && (
              <button type="button" class="plain" onClick={() => setTally(undefined)}>
                Close
              </button>
            )}
          </p>
          {tally.refused.length > 0 && (
            <ul>
              {tally.refused.map((r) => (
                <li key={r.id}>
                  <a href={"/ui/tasks/" + r.id}>{inert(r.title)}</a>: {r.why}
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
      {guiding && (
        <Dialog title={`Redispatch ${many(n, "task")}`} close={() => setGuiding(undefined)}>
          <form
            onSubmit={(e) => {
              e.preventDefault();
              const text = String(new FormData(e.currentTarget).get("guidance") ?? "").trim();
              setGuiding(undefined);
              void run(guiding, text ? { guidance: text } : {});
            }}
          >
            <label>
              Guidance <small>what the next attempt of each should know; may be empty</small>
              <textarea name="guidance" rows={3} maxLength={2000} autoFocus />
            </label>
            <div class="acts">
              <button type="button" onClick={() => setGuiding(undefined)}>
                Not now
              </button>
              <button type="submit" class="main">
                Queue them again
              </button>
            </div>
          </form>
        </Dialog>
      )}
    </div>
  );
}
