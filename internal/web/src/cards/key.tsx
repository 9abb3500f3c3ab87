// Keys of model providers, the account's and one's own: one card for both.
import { useState } from "preact/hooks";
import {
  billingKeyAdd,
  billingKeyBudgetSet,
  billingKeyCapacitySet,
  billingKeyDelete,
  billingKeyKindSet,
  billingKeyModels,
  billingKeyPriceSet,
  billingKeyPrioritySet,
  billingKeyRotate,
  billingKeyVerify,
  billingProviderModels,
  selfKeyAdd,
  selfKeyCapacitySet,
  selfKeyDelete,
  selfKeyKindSet,
  selfKeyPrioritySet,
  selfKeyRotate,
  selfKeyVerify,
  selfProviderModels,
  type BillingKey,
} from "../client.gen";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { Choice, number, of, Text } from "../ui/inputs";
import { many, usd } from "../ui/money";
import { Act } from "../ui/parts";
import { Status } from "../ui/status";
import { Time } from "../ui/time";
import { Budget } from "./cap";
import { priced, priceOf, Prices } from "./price";

// A pool is what can be done with its keys: the account's, or one's own.
export const shared = {
  add: billingKeyAdd,
  verify: billingKeyVerify,
  rotate: billingKeyRotate,
  kind: billingKeyKindSet,
  capacity: billingKeyCapacitySet,
  priority: billingKeyPrioritySet,
  remove: billingKeyDelete,
  offers: billingProviderModels,
};
export const own: Pool = {
  add: selfKeyAdd as unknown as typeof billingKeyAdd, // takes neither a model nor a price
  verify: selfKeyVerify,
  rotate: selfKeyRotate,
  kind: selfKeyKindSet,
  capacity: selfKeyCapacitySet,
  priority: selfKeyPrioritySet,
  remove: selfKeyDelete,
  offers: selfProviderModels,
};
export type Pool = typeof shared;

export const paid = [
  ["metered", "by the call"],
  ["subscription", "otherwise"],
] as const;

const facts = (k: BillingKey) =>
  [
    "priority " + k.priority,
    k.kind,
    k.base_url && inert(k.base_url),
    k.capacity !== null && many(k.capacity, "call") + " at once",
    k.cap_usd !== null && `at most ${usd(k.cap_usd)} a month`,
  ].filter(Boolean);

// rests are why a key is not used for a while.
const rests: Record<NonNullable<BillingKey["rest"]>["reason"], string> = {
  rate_limited: "its provider allows no more calls for now",
  overloaded: "its provider is overloaded and said when to come again",
  exhausted: "what it may use is used up until its provider resets that",
  refused: "its provider does not take it",
  failing: "its provider failed several calls in a row",
};

type CardProps = { of: BillingKey; pool: Pool; changed: () => void };

export function KeyCard(p: CardProps) {
  const k = p.of,
    mine = p.pool === own,
    [open, set] = useState(""),
    [models, setModels] = useState<string[]>();
  const done = () => {
    set("");
    p.changed();
  };
  const Toggle = (t: { name: string; panel: string; call: { scope: string } }) => (
    <button
      type="button"
      aria-expanded={open === t.panel}
      {...gate(t.call, () => set(open === t.panel ? "" : t.panel))}
    >
      {t.name}
    </button>
  );
  return (
    <>
      <div>
        <p>
          <strong>{inert(k.label)}</strong> <span class="dim">{k.provider}</span> <code>{k.masked}</code>
        </p>
        <p class="dim">
          {facts(k).join(" · ")} · verified <Time at={k.last_verified_at} />
          {!mine && <> · {k.price ? priced(k.price) : "price by the tables"}</>}
        </p>
        {k.rest && (
          <p class="hold">
            It was put to rest <Time at={k.rest.since} /> and serves again <Time at={k.rest.until} />:{" "}
            {rests[k.rest.reason]}. Other keys of {k.provider}, if there are any, serve meanwhile.
          </p>
        )}
        {k.last_error && <p class="trouble">{inert(k.last_error)}</p>}
        {models && (
          <p class="dim">
            {many(models.length, "model")}: {inert(models.join(", "))}
          </p>
        )}
        {open === "price" && (
          <Form
            call={billingKeyPriceSet}
            submit="Set the price"
            said="It holds from the next call on."
            keep
            done={done}
            read={(f) => ({ id: k.id, price: priceOf(f) ?? null })}
          >
            {(wrong) => <Prices wrong={wrong} under="price." of={k.price} />}
          </Form>
        )}
        {open === "secret" && (
          <Form
            call={p.pool.rotate}
            submit="Replace the secret"
            said="Calls from now on have the new one."
            done={done}
            read={(f) => ({ id: k.id, key: of(f, "key") ?? "" })}
          >
            {(wrong) => (
              <Text name="key" label="New key" hint="never shown again" wrong={wrong} type="password" focus />
            )}
          </Form>
        )}
        {open === "use" && <Use of={k} pool={p.pool} changed={p.changed} />}
      </div>
      <div class="acts">
        {k.rest && <Status of="paused" say="rests" />}
        <Status
          of={k.status === "ok" ? "verified" : k.status === "failing" ? "failed" : "waiting"}
          say={k.status === "ok" ? "works" : k.status === "failing" ? "fails" : "not used yet"}
        />
        <Act
          call={p.pool.verify}
          input={{ id: k.id }}
          done={(out) => {
            p.changed();
            return out.works ? "The provider takes it." : "The provider refuses it.";
          }}
        >
          Verify
        </Act>
        {!mine && (
          <Act call={billingKeyModels} input={{ id: k.id }} done={(out) => setModels(out.models)}>
            Models
          </Act>
        )}
        <Toggle name="Change" panel="use" call={p.pool.kind} />
        {k.provider !== "scripted" && <Toggle name="Replace" panel="secret" call={p.pool.rotate} />}
        {!mine && <Toggle name="Price" panel="price" call={billingKeyPriceSet} />}
        <Act
          call={p.pool.remove}
          input={{ id: k.id }}
          confirm={`Forget the key ${k.label}? It serves no further call.`}
          done={() => {
            p.changed();
            return "Forgotten.";
          }}
        >
          Delete
        </Act>
      </div>
    </>
  );
}

// Use is how a key is used: its place among the others, how many calls at once, how it is paid.
function Use(p: CardProps) {
  const k = p.of,
    said = "It holds from the next call on.";
  return (
    <>
      <Form
        call={p.pool.priority}
        submit="Set the priority"
        said={said}
        keep
        done={p.changed}
        read={(f) => ({ id: k.id, priority: number(f, "priority")! })}
      >
        {(wrong) => (
          <Text name="priority" label="Priority" hint="the lowest first" wrong={wrong} value={k.priority} decimal />
        )}
      </Form>
      <Form
        call={p.pool.capacity}
        submit="Set the calls"
        said={said}
        keep
        done={p.changed}
        read={(f) => ({ id: k.id, capacity: number(f, "capacity") ?? null })}
      >
        {(wrong) => (
          <Text
            name="capacity"
            label="Calls at once"
            hint="further ones go over another key"
            wrong={wrong}
            value={k.capacity}
            decimal
          />
        )}
      </Form>
      {p.pool !== own && (
        <Form
          call={billingKeyBudgetSet}
          submit="Set its budget"
          said={said}
          keep
          done={p.changed}
          read={(f) => ({ id: k.id, usd: number(f, "usd") ?? null })}
        >
          {(wrong) => <Budget of="this key" wrong={wrong} value={k.cap_usd} />}
        </Form>
      )}
      <Form
        call={p.pool.kind}
        submit="Set how it is paid"
        said="Kept."
        keep
        done={p.changed}
        read={(f) => ({ id: k.id, kind: of(f, "kind") as "metered" })}
      >
        {(wrong) => <Choice name="kind" label="Paid" wrong={wrong} value={k.kind} all={paid} />}
      </Form>
    </>
  );
}
