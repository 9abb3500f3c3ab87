// Audit: what happened in the account, by whom, with what it changed.
import { useState } from "preact/hooks";
import { keep, said } from "../api";
import { auditTail, memberList, type AuditEvent } from "../client.gen";
import { EventDetail, EventTable, sentence } from "../cards/events";
import { learn, people, whoOf } from "../cards/who";
import { useList, useOne } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { useEvery } from "../ui/every";
import { useKeys } from "../ui/keys";
import { many } from "../ui/money";
import { Code, Head, Search } from "../ui/parts";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";

// pagesAtOnce is how many pages are looked through before one is asked whether to go on.
const pagesAtOnce = 5;

export default function Audit() {
  const q = query().get("q") ?? "",
    who = query().get("actor") ?? "",
    kind = query().get("kind") ?? "",
    object = query().get("object") ?? "",
    at = query().get("event") ?? "";
  const members = useOne("members", (signal) => memberList({}, { signal })),
    // Members who did nothing can be chosen, and people who did something and have left.
    team = new Map(people()),
    [looked, look] = useState<string>();
  for (const m of members.value.value?.data ?? []) team.set("user:" + m.user_id, inert(m.login));
  // The server filters by one actor; what is an actor of a sort is told apart here.
  const exact = who === "system" || /^user:./.test(who),
    filter = [
      ...(exact ? ["actor:" + who] : []),
      ...(kind ? ["kind:" + (kind.includes(".") ? kind : kind + ".")] : []),
      ...(object ? ["object:" + object] : []),
    ];
  const fits = (e: AuditEvent) =>
    (!who || (who === "people" ? e.actor.startsWith("user:") : e.actor.startsWith(who))) &&
    (!kind || (kind.includes(".") && !kind.endsWith(".") ? e.kind === kind : e.kind.startsWith(kind))) &&
    (!object || e.object === object) &&
    (!q ||
      (sentence(e.kind) + e.kind + e.object + whoOf(e.actor) + JSON.stringify(e.data))
        .toLowerCase()
        .includes(q.toLowerCase()));
  const narrow = !!q || (!!who && !exact);
  // search reads on until a page of events fits, or pagesAtOnce are looked through.
  const search = async (cursor: string | undefined, signal: AbortSignal) => {
    const out: AuditEvent[] = [];
    for (let n = 0; n < pagesAtOnce; n++) {
      const page = await auditTail({ cursor, filter, per_page: narrow ? 200 : 50 }, { signal });
      if (q) await learn(page.data.map((e) => e.actor));
      out.push(...page.data.filter(fits));
      look(page.data.at(-1)?.at);
      cursor = page.next_cursor ?? undefined;
      if (!cursor || out.length >= 50) break;
    }
    return { data: out, next_cursor: cursor ?? null };
  };
  const list = useList<AuditEvent>([q, who, kind, object].join("\n"), search, { fits });
  useEvery(10, () => {
    if (list.state.peek() === "ready")
      void auditTail({ filter, per_page: 50 }).then(
        (page) => list.apply(page.data.map((row) => ({ topic: "audit", op: "upsert" as const, id: row.id, row }))),
        () => undefined,
      );
  }, [list]);
  const set = (values: Record<string, string>) => setQuery({ ...values, event: "" });
  return (
    <section class="room">
      <Head title="Audit" count={list.count}>
        <Search label="Filter events" value={q} to={(t) => set({ q: t })} />
        <Search label="Kind" whole="Kind: task, task.failed" value={kind} to={(t) => set({ kind: t })} />
        <Search label="Object" whole="Id of an object" value={object} to={(t) => set({ object: t })} />
        <select aria-label="Who" value={who} onChange={(e) => set({ actor: e.currentTarget.value })}>
          <option value="">anybody</option>
          <option value="people">people</option>
          {[...team]
            .sort((a, b) => a[1].localeCompare(b[1]))
            .map(([actor, name]) => (
              <option key={actor} value={actor}>
                {name}
              </option>
            ))}
          <option value="pat:">tokens</option>
          <option value="box:">boxes</option>
          <option value="system">the system</option>
          <option value="operator:">operators</option>
        </select>
        <span class="grow" />
        <Export />
      </Head>
      <p class="dim">
        Each row has the hash of the one before. To check the chain of an export:{" "}
        <Code text="yardmaster audit verify audit.jsonl" />
      </p>
      {at && <One key={at} id={at} close={() => setQuery({ event: "" })} />}
      {narrow && list.more && list.state.value === "ready" && (
        <p class="tools">
          <span class="dim">
            Looked back to <Time at={looked} suffix={false} />.
          </span>
          <button type="button" onClick={() => void list.older()}>
            Look further
          </button>
        </p>
      )}
      <EventTable
        list={list}
        empty={
          q || who || kind || object ? (
            <>
              No event fits, as far as was looked. <a href="/ui/audit">Show all</a>.
            </>
          ) : (
            "Nothing has happened yet."
          )
        }
      />
    </section>
  );
}

// One is the event of an id, whether or not it is in the list.
function One(p: { id: string; close: () => void }) {
  const one = useOne<{ found?: AuditEvent | undefined }>(p.id, async (signal) => ({
      found: (await auditTail({ filter: ["id:" + p.id] }, { signal })).data[0],
    })),
    e = one.value.value?.found;
  useKeys([{ keys: "u, Backspace", does: "close the event", group: "This page", run: p.close }]);
  if (e) return <EventDetail of={e} close={p.close} />;
  return one.value.value || one.error.value ? (
    <p class="empty">
      There is no event <code>{inert(p.id)}</code> here.{" "}
      <button type="button" onClick={p.close}>
        Close
      </button>
    </p>
  ) : null;
}

// Export downloads every row as a line of JSON, newest first, as the command line does.
function Export() {
  const [got, set] = useState<number>();
  const run = async () => {
    const lines: string[] = [];
    try {
      for (let cursor: string | undefined; ; ) {
        const page = await auditTail({ cursor, per_page: 200 });
        for (const row of page.data) lines.push(JSON.stringify(row) + "\n");
        set(lines.length);
        if (!(cursor = page.next_cursor ?? undefined)) break;
      }
      keep(new Blob(lines, { type: "application/jsonl" }), "audit.jsonl");
      tell(`${many(lines.length, "row")} exported.`);
    } catch (e) {
      tell(said(e));
    }
    set(undefined);
  };
  return (
    <button type="button" disabled={got !== undefined} onClick={() => void run()}>
      {got === undefined ? "Export" : `Exporting, ${many(got, "row")}…`}
    </button>
  );
}
