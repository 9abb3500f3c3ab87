// Keys and models: the account's keys and one's own, which model one likes best, what models
// cost, what may be spent, and where copies of calls go.
import { useState } from "preact/hooks";
import {
  billingKeysList,
  billingLogSinkGet,
  billingPriceDelete,
  billingPriceList,
  billingPriceSet,
  billingSpendCapGet,
  providers,
  selfKeysList,
  type AccountPrice,
  type BillingKey,
  type ModelPrice,
} from "../../client.gen";
import { CapForm, CapMeter } from "../../cards/cap";
import { Copies } from "../../cards/copies";
import { KeyCard, own, shared, type Pool } from "../../cards/key";
import { KeyForm, type Provider } from "../../cards/keyform";
import { Liked } from "../../cards/liked";
import { priced, priceOf, Prices } from "../../cards/price";
import { Stalled } from "../../cards/stalled";
import { useList, useOne } from "../../list";
import { query } from "../../route";
import { may } from "../../session";
import { useFresh } from "../../ui/every";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { Cards, Choice, of, Text } from "../../ui/inputs";
import { Act, Code, Head } from "../../ui/parts";

export default function Keys() {
  return (
    <>
      <Head title="Keys and models" />
      <p class="dim">
        Agents have no key: the server calls models for them, with the first that fits. Yours go before the account's,
        for what you alone ask for.
      </p>
      {may(billingKeysList) && <Shared />}
      <Own />
      <h2>The model you like best</h2>
      <p class="dim">
        Work that you alone ask for is done with it, where its template leaves that open. Reviews and checks go as the
        account has it.
      </p>
      <Liked />
      {may(billingKeysList) && <Money />}
      {may(billingLogSinkGet) && (
        <>
          <h2>Copies of calls</h2>
          <p class="dim">
            Prompts and answers of the account's calls can be sent to a place of your own. Secrets that the server knows
            are taken out; no call waits for it.
          </p>
          <Copies />
        </>
      )}
    </>
  );
}

function Shared() {
  const list = useList<BillingKey>("keys", (cursor, signal) => billingKeysList({ cursor, per_page: 50 }, { signal })),
    again = () => void list.load();
  useFresh(30, list);
  return (
    <>
      <h2>The account's keys</h2>
      <Cards
        list={list}
        label="Model keys"
        empty={
          <>
            There is no key. Without one no agent can work.
            <Stalled reason="no_credential" for="one" />
            <Code text="yardmaster key add --provider anthropic < key.txt" />
          </>
        }
        row={(k) => <KeyCard of={k} pool={shared} changed={again} />}
      />
      <Adds
        name="Add a key to the account"
        first={!!query().get("add") || (list.state.value === "ready" && !list.ids.value.length)}
        pool={shared}
        changed={again}
      />
    </>
  );
}

function Own() {
  const list = useList<BillingKey>("own", (cursor, signal) => selfKeysList({ cursor, per_page: 50 }, { signal })),
    again = () => void list.load();
  useFresh(30, list);
  return (
    <>
      <h2>Your own keys</h2>
      <Cards
        list={list}
        label="Your own keys"
        empty="You have none. Your work goes over the account's."
        row={(k) => <KeyCard of={k} pool={own} changed={again} />}
      />
      <Adds name="Add a key of your own" first={false} pool={own} changed={again} />
    </>
  );
}

// Adds is the form for a new key, which is there once it is wanted.
function Adds(p: { name: string; first: boolean; pool: Pool; changed: () => void }) {
  const [open, set] = useState<boolean>(),
    is = open ?? p.first;
  return (
    <details open={is} onToggle={(e) => e.currentTarget.open !== is && set(e.currentTarget.open)}>
      <summary>{p.name}</summary>
      {is && <KeyForm pool={p.pool} changed={p.changed} />}
    </details>
  );
}

// Money is what may be spent, and what models cost.
function Money() {
  const prices = useList<AccountPrice & { id: string }>("prices", async (cursor, signal) => {
    const page = await billingPriceList({ cursor, per_page: 100 }, { signal });
    return { ...page, data: page.data.map((x) => ({ ...x, id: x.provider + "/" + x.model })) };
  });
  const cap = useOne("cap", (signal) => billingSpendCapGet({}, { signal }), { counts: ["budgets"] });
  return (
    <>
      <h2>What may be spent</h2>
      {cap.value.value && (
        <>
          <CapMeter of={cap.value.value} />
          <CapForm of={cap.value.value} changed={() => void cap.load()} />
        </>
      )}
      <h2>Prices of models</h2>
      <p class="dim">
        They go before a key's price and the server's table. A model without a price is held back where a limit in
        dollars applies.
      </p>
      <Cards
        list={prices}
        label="Prices"
        empty="The account has set none."
        row={(x) => (
          <>
            <div>
              <p>
                <strong>{x.model === "*" ? "every model" : inert(x.model)}</strong>{" "}
                <span class="dim">of {x.provider}</span>
              </p>
              <p class="dim">{priced(x)}</p>
            </div>
            <div class="acts">
              <Act
                call={billingPriceDelete}
                input={{ provider: x.provider, model: x.model }}
                confirm="Forget the price?"
                done={() => {
                  void prices.load();
                  return "Forgotten.";
                }}
              >
                Delete
              </Act>
            </div>
          </>
        )}
      />
      <Form
        call={billingPriceSet}
        submit="Set the price"
        said="It holds from the next call on."
        done={() => void prices.load()}
        read={(f) => ({
          provider: of(f, "provider") as Provider,
          model: of(f, "model") ?? "",
          ...(priceOf(f) ?? ({} as ModelPrice)),
        })}
      >
        {(wrong) => (
          <>
            <Choice name="provider" label="Provider" wrong={wrong} all={providers} value="anthropic" />
            <Text name="model" label="Model" hint="* for every one" wrong={wrong} />
            <Prices wrong={wrong} />
          </>
        )}
      </Form>
    </>
  );
}
