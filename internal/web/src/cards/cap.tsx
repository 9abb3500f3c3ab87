// Spending: how much of a cap is used, and the field that sets the cap.
import { billingSpendCapSet, type SpendCap } from "../client.gen";
import { Form } from "../ui/form";
import { number, Text } from "../ui/inputs";
import { many, usd } from "../ui/money";
import { Fact, Facts, Meter } from "../ui/parts";

// CapMeter shows a cap and what is left of it.
export function CapMeter(p: { of: SpendCap }) {
  const c = p.of,
    lower = Math.min(c.usd ?? Infinity, c.operator_usd ?? Infinity),
    used = Number(c.spent_usd) + Number(c.reserved_usd);
  return (
    <Facts>
      <Fact name="Budget">
        {Number.isFinite(lower) ? <Meter value={used} max={lower} label={`${usd(used)} of ${usd(lower)}`} /> : "none"}
      </Fact>
      {c.left_usd !== null && (
        <Fact name="Left">
          <span class="num">{usd(c.left_usd)}</span>
        </Fact>
      )}
      {c.operator_usd !== null && <Fact name="The operator's budget">{usd(c.operator_usd)}</Fact>}
    </Facts>
  );
}

// Budget is the field of each form that says what something may cost in a month.
export const Budget = (p: {
  of: string;
  wrong: Parameters<typeof Text>[0]["wrong"];
  value?: number | null;
  none?: string;
  focus?: boolean;
}) => (
  <Text
    name="usd"
    label={`Budget of ${p.of}`}
    hint={`USD a month; empty: ${p.none ?? "none"}`}
    wrong={p.wrong}
    value={p.value}
    decimal
    {...(p.focus && { focus: true })}
  />
);

export function CapForm(p: { of: SpendCap; unpriced?: number | undefined; changed: () => void }) {
  return (
    <Form
      key={p.of.usd}
      call={billingSpendCapSet}
      submit="Set the budget"
      said="It holds from the next call on."
      keep
      done={p.changed}
      read={(f) => ({ usd: number(f, "usd") ?? null })}
    >
      {(wrong) => (
        <>
          <Budget of="the account" wrong={wrong} value={p.of.usd} />
          <p class={p.unpriced ? "hold" : "dim"}>
            While there is a budget, a call of a model without a known price is refused, and its task is held
            {!!p.unpriced && `: ${many(p.unpriced, "call")} of this month had none`}.{" "}
            <a href="/ui/settings/keys">Prices of models</a>
          </p>
        </>
      )}
    </Form>
  );
}
