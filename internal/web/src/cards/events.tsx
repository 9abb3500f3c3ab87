// Events as rows: who did what to which object, and what it changed.
import type { AuditEvent } from "../client.gen";
import type { List } from "../list";
import { Who } from "./who";
import { here } from "../route";
import { inert } from "../ui/ansi";
import { useKeys } from "../ui/keys";
import { Fact, Facts, Id } from "../ui/parts";
import { words } from "../ui/status";
import { Table } from "../ui/table";
import { Time } from "../ui/time";
import { table } from "../own";

const pages: Record<string, string> = table({
  task: "/ui/tasks/",
  plan: "/ui/plans/",
  pr: "/ui/prs/",
  ask: "/ui/asks/",
  box: "/ui/boxes/",
  session: "/ui/sessions/",
  escalation: "/ui/escalations/",
  schedule: "/ui/settings/schedules#",
  source: "/ui/settings/integrations/",
});

// of people are the kinds of events whose object is a person.
const people = /^(user|member)\./;
const person = /^user:[0-9a-f]{8}-/;

// sentence is a kind such as task.created in words.
export const sentence = (kind: string) => words(kind.replace(".", " "));

export function EventTable(p: { list: List<AuditEvent>; empty: preact.ComponentChildren; foreign?: boolean }) {
  const to = (id: string) => {
    const url = new URL(here.value);
    url.searchParams.set("event", id);
    return url.pathname + url.search;
  };
  return (
    <Table
      list={p.list}
      id="events"
      label="Events"
      widths="150px minmax(0,1fr) 130px 110px 90px"
      href={(e) => to(e.id)}
      empty={p.empty}
      columns={[
        { name: "Who", cell: (e) => <Doer of={e} /> },
        {
          name: "What",
          wide: true,
          cell: (e) => (
            <>
              {sentence(e.kind)}
              <small> {brief(e.data)}</small>
            </>
          ),
        },
        {
          name: "Object",
          class: "less",
          rank: 5,
          cell: (e) =>
            people.test(e.kind) ? (
              <Who of={"user:" + e.object} />
            ) : (
              e.object && <code>{inert(e.object.slice(0, 13))}</code>
            ),
        },
        {
          name: p.foreign ? "Account" : "Number",
          class: "num dim less",
          cell: (e) => (p.foreign ? <code>{e.account_id?.slice(0, 8) ?? "platform"}</code> : e.seq),
        },
        { name: "When", class: "dim end", cell: (e) => <Time at={e.at} suffix={false} /> },
      ]}
    />
  );
}

// Doer is who did it. Nobody is signed in yet who signs in: it is the one whom it is about.
function Doer(p: { of: AuditEvent }) {
  const e = p.of;
  return <Who of={e.kind.startsWith("user.") && !person.test(e.actor) ? "user:" + e.object : e.actor} />;
}

// brief is the first short texts of what changed.
function brief(data: unknown): string {
  if (!data || typeof data !== "object") return "";
  return inert(
    Object.entries(data)
      .filter(([, v]) => typeof v === "string" && v && v.length < 60 && !/^([a-z_]+:)?[0-9a-f]{8}-/.test(v))
      .slice(0, 2)
      .map(([k, v]) => `${words(k)}: ${/^[a-z]+(_[a-z0-9]+)+$/.test(String(v)) ? words(String(v)) : v}`)
      .join(", "),
  );
}

const text = (v: unknown) =>
  inert(v === null || v === undefined ? "–" : typeof v === "string" ? v : JSON.stringify(v, null, 1));
const olds = ["from", "was", "before", "previous", "previous_role"],
  news = ["to", "now", "after", "role", "is"];

// EventDetail shows what changed: before beside after where the event has both.
export function EventDetail(p: { of: AuditEvent; close: () => void }) {
  const e = p.of,
    data = (e.data && typeof e.data === "object" ? e.data : {}) as Record<string, unknown>,
    noun = e.kind.split(".")[0]!;
  useKeys([{ keys: "u, Backspace", does: "close the event", group: "This page", run: p.close }]);
  const was = olds.find((k) => k in data),
    is = was && news.find((k) => k in data),
    rest = Object.entries(data).filter(([k]) => !is || (k !== was && k !== is));
  return (
    <section class="once" aria-label="Event">
      <p>
        <strong>{sentence(e.kind)}</strong> by <Doer of={e} /> <Time at={e.at} />
      </p>
      <Facts>
        {e.object && (
          <Fact name="Object">
            {people.test(e.kind) ? (
              <Who of={"user:" + e.object} />
            ) : pages[noun] ? (
              <a href={pages[noun] + e.object}>{e.object.slice(0, 8)}</a>
            ) : (
              <Id of={e.object} chars={13} />
            )}
          </Fact>
        )}
        {e.request_id && (
          <Fact name="Request">
            <Id of={e.request_id} />
          </Fact>
        )}
        <Fact name="Number in the chain">{e.seq}</Fact>
        <Fact name="Hash">
          <Id of={e.hash} chars={12} />
        </Fact>
      </Facts>
      {was && is && (
        <div class="change">
          <div>
            <small>Before</small>
            <pre tabIndex={0}>{text(data[was])}</pre>
          </div>
          <div>
            <small>After</small>
            <pre tabIndex={0}>{text(data[is])}</pre>
          </div>
        </div>
      )}
      {rest.length > 0 && (
        <div class="scroll" tabIndex={0}>
          <table class="bars">
            <tbody>
              {rest.map(([k, v]) => (
                <tr key={k}>
                  <th scope="row">{words(inert(k))}</th>
                  <td class="raw">{typeof v === "string" && person.test(v) ? <Who of={v} /> : text(v)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div class="acts">
        <button type="button" onClick={p.close}>
          Close
        </button>
      </div>
    </section>
  );
}
