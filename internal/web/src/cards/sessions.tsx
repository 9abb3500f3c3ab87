// Sessions as rows: what talked to a model, for what, and what it cost.
import type { ComponentChildren } from "preact";
import type { Session } from "../client.gen";
import type { List } from "../list";
import { inert } from "../ui/ansi";
import { count, many, usd } from "../ui/money";
import { Status, words } from "../ui/status";
import { Table } from "../ui/table";
import { Time, Took } from "../ui/time";
import { table } from "../own";

// own are the kinds that say by themselves what they came of.
const own: Record<string, string> = table({ work: "task", review: "review", ci: "check" });

export const tokens = (s: Session) => count(s.tokens.input + s.tokens.output + s.tokens.cache);

// costOf is what a session cost, as far as that is known.
export const costOf = (s: Session) =>
  s.cost_usd === null
    ? s.calls
      ? "no price is known"
      : "nothing yet"
    : usd(s.cost_usd) + (s.unpriced_calls ? `, and ${many(s.unpriced_calls, "call")} without a price` : "");

// Cost is the same in short: a sum that lacks calls without a price says so.
function Cost(p: { of: Session }) {
  const lacks = p.of.cost_usd !== null && p.of.unpriced_calls > 0;
  return (
    <span title={costOf(p.of)}>
      {usd(p.of.cost_usd)}
      {lacks && <small> + {p.of.unpriced_calls}</small>}
    </span>
  );
}

export function SessionTable(p: { list: List<Session>; empty: ComponentChildren; repo?: boolean }) {
  return (
    <Table
      list={p.list}
      id="sessions"
      label="Sessions"
      widths={`120px minmax(0,1fr)${p.repo ? " minmax(0,170px)" : ""} minmax(0,160px) 70px 100px 80px 80px 90px`}
      href={(s) => "/ui/sessions/" + s.id}
      empty={p.empty}
      columns={[
        { name: "Outcome", cell: (s) => <Status of={s.outcome ?? (s.ended_at ? "ended" : "running")} noun="run" /> },
        {
          name: "For",
          wide: true,
          cell: (s) => (
            <>
              {s.title ? inert(s.title) : words(s.kind)}
              <small>
                {s.title && " · " + words(s.kind)}
                {own[s.kind] !== s.trigger && (
                  <> · came of {s.trigger === "ask" ? "an ask" : "a " + words(s.trigger)}</>
                )}
              </small>
            </>
          ),
        },
        ...(p.repo ? [{ name: "Repository", class: "dim less", rank: 2, cell: (s: Session) => s.repo ?? "–" }] : []),
        { name: "Model", class: "dim less", rank: 3, cell: (s) => (s.model ? inert(s.model) : "–") },
        { name: "Calls", class: "num less", cell: (s) => count(s.calls) },
        { name: "Tokens", class: "num less", cell: tokens },
        { name: "Cost", class: "num less", rank: 4, cell: (s) => <Cost of={s} /> },
        { name: "Took", class: "num less", rank: 1, cell: (s) => <Took from={s.started_at} to={s.ended_at} /> },
        { name: "Begun", class: "dim end", cell: (s) => <Time at={s.started_at} suffix={false} /> },
      ]}
    />
  );
}
