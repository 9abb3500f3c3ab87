// Audit: what happened in the account, by whom, with what it changed.
import { auditTail, memberList, type AuditEvent } from "../client.gen";
import { EventDetail, EventTable, sentence, whoOf } from "../cards/events";
import { useList, useOne } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { useEvery } from "../ui/every";
import { Code, Head, Search } from "../ui/parts";

export default function Audit() {
  const q = query().get("q") ?? "", who = query().get("actor") ?? "", at = query().get("event") ?? "";
  const members = useOne("members", (signal) => memberList({}, { signal })), team = members.value.value?.data ?? [];
  const fits = (e: AuditEvent) => (!who || (who === "people" ? e.actor.startsWith("user:") : e.actor.startsWith(who))) && (!q || (sentence(e.kind) + e.kind + e.object + whoOf(e.actor, team) + JSON.stringify(e.data)).toLowerCase().includes(q.toLowerCase()));
  const list = useList<AuditEvent>(q + "\n" + who, async (cursor, signal) => search(cursor, signal, fits));
  useEvery(10, () => { if (!list.hold) void list.load(); }, [list]);
  const open = list.rows.get(at)?.value;
  return <section class="fill">
    <Head title="Audit" count={list.ids.value.length}><Search label="Filter events" value={q} to={(t) => setQuery({ q: t, event: "" })} />
      <select aria-label="Who" value={who} onChange={(e) => setQuery({ actor: e.currentTarget.value, event: "" })}><option value="">anybody</option><option value="people">people</option>{team.map((m) => <option key={m.user_id} value={"user:" + m.user_id}>{inert(m.login)}</option>)}<option value="pat:">tokens</option><option value="box:">boxes</option><option value="system">the system</option><option value="operator:">operators</option></select></Head>
    <p class="dim">Each row has the hash of the one before. To check the chain: <Code text="yardmaster audit export > rows.jsonl && yardmaster audit verify rows.jsonl" /></p>
    {open && <EventDetail of={open} members={team} close={() => setQuery({ event: "" })} />}
    <EventTable list={list} members={team} empty={q || who ? <>No event fits, as far as was looked. <a href="/ui/audit">Show all</a>.</> : "Nothing has happened yet."} /></section>;
}

// search reads on until a page of events fits. The server has no filter for them.
async function search(cursor: string | undefined, signal: AbortSignal, fits: (e: AuditEvent) => boolean) {
  const out: AuditEvent[] = [];
  for (let n = 0; n < 10; n++) {
    const page = await auditTail({ cursor, per_page: 200 }, { signal });
    out.push(...page.data.filter(fits));
    cursor = page.next_cursor ?? undefined;
    if (!cursor || out.length >= 50) break;
  }
  return { data: out, next_cursor: cursor ?? null };
}
