// Usage and budgets: what was spent in a month, by whom, on what, and the caps.
import { useState } from "preact/hooks";
import {
  billingMemberCapSet,
  billingSpendCapGet,
  billingUsage,
  type BillingUsage,
  type UsagePart,
} from "../client.gen";
import { Budget, CapForm, CapMeter } from "../cards/cap";
import { Given } from "../cards/gift";
import { MonthCost } from "../cards/monthcost";
import { KeyCaps, RepoCaps } from "../cards/repocap";
import { useOne } from "../list";
import { query, setQuery } from "../route";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { number } from "../ui/inputs";
import { count, usd } from "../ui/money";
import { Coming, Empty, Figure, Head, Meter } from "../ui/parts";
import { words } from "../ui/status";

const months = () =>
  Array.from({ length: 12 }, (_, i) => {
    const d = new Date();
    return new Date(Date.UTC(d.getUTCFullYear(), d.getUTCMonth() - i, 1)).toISOString().slice(0, 7);
  });

// unknown says that no call of a month has a known price, so that its sums say nothing.
const unknown = (u: BillingUsage) => !!u.calls && u.unpriced_calls === u.calls;

const counted = { counts: ["budgets"] }; // a row of it changes with each session

export default function Usage() {
  const month = query().get("month") ?? "",
    one = useOne("usage" + month, (signal) => billingUsage({ month: month || undefined }, { signal }), counted),
    u = one.value.value,
    [open, set] = useState("");
  const cap = useOne(
    "cap",
    (signal) => (may(billingSpendCapGet) ? billingSpendCapGet({}, { signal }) : Promise.reject(new Error(""))),
    counted,
  );
  const again = () => {
    void one.load();
    void cap.load();
  };
  return (
    <>
      <Head title="Usage and budgets">
        <select
          aria-label="Month"
          value={month || months()[0]}
          onChange={(e) => setQuery({ month: e.currentTarget.value === months()[0] ? "" : e.currentTarget.value })}
        >
          {months().map((m) => (
            <option key={m} value={m}>
              {m}
            </option>
          ))}
        </select>
      </Head>
      {!u ? (
        <Coming of={one} />
      ) : (
        <>
          <div class="figures">
            <Figure n={unknown(u) ? "–" : usd(u.spent_usd)} name={"spent in " + u.period} />
            {u.forecast && !unknown(u) && (
              <Figure
                n={usd(u.forecast.usd)}
                name={`by its end, likely ${usd(u.forecast.low_usd)} to ${usd(u.forecast.high_usd)}`}
              />
            )}
            <Figure n={usd(u.reserved_usd)} name="set aside for calls under way" />
            {Number(u.given_usd ?? 0) > 0 && <Figure n={usd(u.given_usd!)} name="paid by others, who gave keys" />}
            <Figure n={u.sessions === null ? "–" : count(u.sessions)} name="sessions" />
            <Figure n={u.calls === null ? "–" : count(u.calls)} name="calls of models" />
            <Figure
              n={u.unpriced_calls === null ? "–" : count(u.unpriced_calls)}
              name="calls without a known price, in no sum"
            />
          </div>
          {u.calls === null && <p class="dim">Numbers of calls and sessions are kept for about three months.</p>}
          {u.calls !== null && <MonthCost of={u} cap={month ? undefined : cap.value.value} priced={!unknown(u)} />}
          {!month && cap.value.value && (
            <>
              <h2>Budget</h2>
              <CapMeter of={cap.value.value} />
              <CapForm of={cap.value.value} unpriced={u.unpriced_calls ?? undefined} changed={again} />
            </>
          )}
          <h2>By member</h2>
          {u.members.length === 0 ? (
            <Empty>Nobody's work has cost anything.</Empty>
          ) : (
            <ul class="cards" aria-label="Members">
              {u.members.map((m) => (
                <li key={m.user_id} class="item">
                  <div>
                    <p>
                      <strong>{inert(m.login)}</strong>
                    </p>
                    {open === m.user_id && (
                      <Form
                        call={billingMemberCapSet}
                        submit="Set the budget"
                        said="It holds from the next call on."
                        keep
                        done={() => {
                          set("");
                          again();
                        }}
                        read={(f) => ({ userId: m.user_id, usd: number(f, "usd") ?? null })}
                      >
                        {(wrong) => <Budget of={inert(m.login)} wrong={wrong} value={m.cap_usd} focus />}
                      </Form>
                    )}
                  </div>
                  <div class="acts">
                    {m.cap_usd !== null ? (
                      <Meter
                        value={Number(m.spent_usd) + Number(m.reserved_usd)}
                        max={m.cap_usd}
                        label={`${usd(Number(m.spent_usd) + Number(m.reserved_usd))} of ${usd(m.cap_usd)}`}
                      />
                    ) : (
                      <span class="num">{u.unpriced_calls && !Number(m.spent_usd) ? "–" : usd(m.spent_usd)}</span>
                    )}
                    <button
                      type="button"
                      aria-expanded={open === m.user_id}
                      {...gate(billingMemberCapSet, () => set(open === m.user_id ? "" : m.user_id))}
                    >
                      Budget
                    </button>
                  </div>
                </li>
              ))}
            </ul>
          )}
          <Parts name="model" of={u.models} none="none named" />
          <Parts name="repository" of={u.repos} none="none" />
          {!month && <RepoCaps all={u.repo_caps} changed={again} />}
          {!month && <KeyCaps all={u.key_caps} />}
          <Parts
            name="kind of session"
            of={u.kinds.map((k) => ({ ...k, name: k.name && words(k.name) }))}
            none="none"
          />
          <Parts name="key" of={u.keys} none="not known" />
          <Parts name="task" of={u.tasks} none="of no task" to="/ui/tasks/" />
          <Parts name="plan" of={u.plans} none="of no plan" to="/ui/plans/" />
          <Given />
          <p class="dim">
            Each session by itself is on <a href="/ui/sessions">Sessions</a>.
          </p>
        </>
      )}
    </>
  );
}

// Parts are the sums of the month's ledger by one thing.
function Parts(p: { name: string; of: UsagePart[]; none: string; to?: string }) {
  const most = Math.max(...p.of.map((r) => Number(r.spent_usd)), 0);
  return (
    <>
      <h2>By {p.name}</h2>
      {p.of.length === 0 ? (
        <Empty>No call of a model is on record.</Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label={"By " + p.name}>
          <table class="bars narrows">
            <thead>
              <tr>
                <th>{p.name[0]!.toUpperCase() + p.name.slice(1)}</th>
                <th class="end">Cost</th>
                <td />
                <th class="end">Sessions</th>
                <th class="end">Calls</th>
                <th class="end">Without a price</th>
              </tr>
            </thead>
            <tbody>
              {p.of.map((r) => (
                <tr key={r.id + " " + r.name}>
                  <th scope="row">
                    {p.to && r.id ? <a href={p.to + r.id}>{inert(r.name ?? p.none)}</a> : inert(r.name ?? p.none)}
                  </th>
                  <td class="num end" data-name="Cost">
                    {r.unpriced_calls === r.calls ? "–" : usd(r.spent_usd)}
                  </td>
                  <td>{most > 0 && <Meter full value={Number(r.spent_usd)} max={most} label="" />}</td>
                  <td class="num end" data-name="Sessions">
                    {r.sessions}
                  </td>
                  <td class="num end" data-name="Calls">
                    {count(r.calls)}
                  </td>
                  <td class="num end" data-name="Without a price">
                    {r.unpriced_calls || ""}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
