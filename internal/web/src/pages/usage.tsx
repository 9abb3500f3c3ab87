// Usage and budgets: what was spent in a month, by whom, on what, and the caps.
import { useState } from "preact/hooks";
import { billingMemberCapSet, billingSpendCapGet, billingUsage, sessionList, type Session, type UsagePart } from "../client.gen";
import { CapForm, CapMeter } from "../cards/cap";
import { useOne } from "../list";
import { query, setQuery } from "../route";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { useEvery } from "../ui/every";
import { Form } from "../ui/form";
import { number, Text } from "../ui/inputs";
import { count, usd } from "../ui/money";
import { Empty, Fact, Facts, Head, Loading, Meter, Trouble } from "../ui/parts";
import { words } from "../ui/status";

const months = () => Array.from({ length: 12 }, (_, i) => { const d = new Date(); return new Date(Date.UTC(d.getUTCFullYear(), d.getUTCMonth() - i, 1)).toISOString().slice(0, 7); });
const kind = (s: Session) => words(s.kind);

export default function Usage() {
  const month = query().get("month") ?? "", one = useOne("usage" + month, (signal) => billingUsage({ month: month || undefined }, { signal })), u = one.value.value, [open, set] = useState("");
  const cap = useOne("cap", (signal) => may(billingSpendCapGet) ? billingSpendCapGet({}, { signal }) : Promise.reject(new Error("")));
  const again = () => { void one.load(); void cap.load(); };
  useEvery(30, again, [one, cap]);
  return <><Head title="Usage and budgets"><select aria-label="Month" value={month || months()[0]} onChange={(e) => setQuery({ month: e.currentTarget.value === months()[0] ? "" : e.currentTarget.value })}>{months().map((m) => <option key={m} value={m}>{m}</option>)}</select></Head>
    {!u ? one.error.value ? <Trouble error={one.error.value} again={again} /> : <Loading /> : <>
      <div class="figures"><Figure n={usd(u.spent_usd)} name={"spent in " + u.period} /><Figure n={usd(u.reserved_usd)} name="set aside for calls under way" /><Figure n={u.sessions === null ? "–" : count(u.sessions)} name="sessions" /><Figure n={u.calls === null ? "–" : count(u.calls)} name="calls of models" />
        <Figure n={u.unpriced_calls === null ? "–" : count(u.unpriced_calls)} name="calls without a known price, in no sum" /></div>
      {u.calls === null && <p class="dim">Numbers of calls and sessions are kept for about three months.</p>}
      {!month && cap.value.value && <><h2>Budget</h2><CapMeter of={cap.value.value} /><CapForm of={cap.value.value} changed={again} /></>}
      <h2>By member</h2>{u.members.length === 0 ? <Empty>Nobody's work has cost anything.</Empty> : <ul class="cards" aria-label="Members">{u.members.map((m) => <li key={m.user_id} class="card"><div><p><strong>{inert(m.login)}</strong></p>
        {open === m.user_id && <Form call={billingMemberCapSet} submit="Set the cap" said="It holds from the next call on." keep done={() => { set(""); again(); }} read={(f) => ({ userId: m.user_id, usd: number(f, "usd") ?? null })}>{(wrong) => <Text name="usd" label="Cap for a month" hint="USD; empty: none" wrong={wrong} value={m.cap_usd} decimal focus />}</Form>}</div>
        <div class="acts">{m.cap_usd !== null ? <Meter value={Number(m.spent_usd) + Number(m.reserved_usd)} max={m.cap_usd} label={`${usd(Number(m.spent_usd) + Number(m.reserved_usd))} of ${usd(m.cap_usd)}`} /> : <span class="num">{usd(m.spent_usd)}</span>}
          <button type="button" disabled={!may(billingMemberCapSet)} title={may(billingMemberCapSet) ? undefined : "Needs the scope " + billingMemberCapSet.scope} aria-expanded={open === m.user_id} onClick={() => set(open === m.user_id ? "" : m.user_id)}>Cap</button></div></li>)}</ul>}
      <Parts name="model" of={u.models} none="none named" /><Parts name="repository" of={u.repos} none="none" />
      {!month && may(sessionList) && <Split />}</>}</>;
}

// Parts are the sums of the month's ledger by one thing.
function Parts(p: { name: string; of: UsagePart[]; none: string }) {
  const most = Math.max(...p.of.map((r) => Number(r.spent_usd)), 0);
  return <><h2>By {p.name}, in the month</h2>{p.of.length === 0 ? <Empty>No call of a model is on record.</Empty>
    : <div class="scroll" tabIndex={0} role="region" aria-label={"By " + p.name}><table class="bars"><thead><tr><th>{p.name}</th><th class="end">Cost</th><td /><th class="end">Sessions</th><th class="end">Calls</th><th class="end">Without a price</th></tr></thead><tbody>
      {p.of.map((r) => <tr key={r.name}><th scope="row">{inert(r.name ?? p.none)}</th><td class="num end">{r.unpriced_calls === r.calls ? "–" : usd(r.spent_usd)}</td><td>{most > 0 && <meter min={0} max={most} value={Number(r.spent_usd)} aria-label={r.name ?? p.none} />}</td><td class="num end">{r.sessions}</td><td class="num end">{count(r.calls)}</td><td class="num end">{r.unpriced_calls || ""}</td></tr>)}</tbody></table></div>}</>;
}

function Figure(p: { n: string; name: string }) { return <a><b class="num">{p.n}</b>{p.name}</a>; }

// Split adds up the newest sessions by their kind, for which the ledger has no sums.
function Split() {
  const one = useOne("sessions", (signal) => sessionList({ limit: 200 }, { signal })), s = one.value.value;
  if (!s) return null;
  const sums = new Map<string, { usd: number; unpriced: number; n: number; calls: number; tokens: number }>();
  for (const x of s.data) {
    const name = kind(x), row = sums.get(name) ?? { usd: 0, unpriced: 0, n: 0, calls: 0, tokens: 0 };
    row.n++; row.calls += x.calls; row.tokens += x.tokens.input + x.tokens.output + x.tokens.cache;
    if (x.cost_usd !== null) row.usd += Number(x.cost_usd); else if (x.calls) row.unpriced++;
    sums.set(name, row);
  }
  const rows = [...sums].sort((a, b) => b[1].usd - a[1].usd || b[1].tokens - a[1].tokens), most = Math.max(...rows.map(([, r]) => r.usd), 0);
  return <><h2>By kind of session</h2><p class="dim">An estimate: of {s.has_more ? "the newest 200 sessions" : s.data.length === 1 ? "the one session there is" : `all ${s.data.length} sessions`}, not of the month.</p>
    {rows.length === 0 ? <Empty>Nothing has called a model yet.</Empty> : <div class="scroll" tabIndex={0}><table class="bars"><thead><tr><th>kind</th><th class="end">Cost</th><td /><th class="end">Sessions</th><th class="end">Without a price</th><th class="end">Tokens</th></tr></thead><tbody>
      {rows.map(([name, r]) => <tr key={name}><th scope="row">{inert(name)}</th><td class="num end">{r.unpriced === r.n ? "–" : usd(r.usd)}</td><td>{most > 0 && <meter min={0} max={most} value={r.usd} aria-label={name} />}</td><td class="num end">{r.n}</td><td class="num end">{r.unpriced || ""}</td><td class="num end">{count(r.tokens)}</td></tr>)}</tbody></table></div>}
    <Facts><Fact name="Each of them"><a href="/ui/sessions">Sessions</a></Fact></Facts></>;
}
