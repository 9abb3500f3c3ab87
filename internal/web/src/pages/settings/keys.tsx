// Keys: of model providers, what models cost, and what may be spent.
import { useState } from "preact/hooks";
import {
  billingKeyAdd,
  billingKeyDelete,
  billingKeyPriceSet,
  billingKeysList,
  billingPriceDelete,
  billingPriceList,
  billingPriceSet,
  billingSpendCapGet,
  providers,
  type AccountPrice,
  type BillingKey,
  type ModelPrice,
} from "../../client.gen";
import { CapForm, CapMeter } from "../../cards/cap";
import { Stalled } from "../../cards/stalled";
import { useList, useOne } from "../../list";
import { useFresh } from "../../ui/every";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { gate } from "../../ui/gate";
import { Cards, Choice, number, of, Text } from "../../ui/inputs";
import { usd } from "../../ui/money";
import { Act, Code, Head } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";

type Provider = (typeof providers)[number];

// priceOf reads the four prices of a form; none if all are empty.
function priceOf(f: FormData): ModelPrice | undefined {
  if (!["in", "out", "read", "write"].some((n) => of(f, n))) return undefined;
  return {
    input_usd: number(f, "in")!,
    output_usd: number(f, "out")!,
    cache_read_usd: number(f, "read"),
    cache_write_usd: number(f, "write"),
  };
}

function Prices(p: { wrong: (f: string) => string[] | undefined; under?: string; of?: ModelPrice | null }) {
  const w = (name: string) => () => p.wrong((p.under ?? "") + name),
    v = p.of;
  return (
    <>
      <Text
        name="in"
        label="Input"
        hint="USD for a million tokens"
        wrong={w("input_usd")}
        value={v?.input_usd}
        decimal
      />
      <Text name="out" label="Output" wrong={w("output_usd")} value={v?.output_usd} decimal />
      <Text
        name="read"
        label="Read from a cache"
        hint="empty: as input"
        wrong={w("cache_read_usd")}
        value={v?.cache_read_usd}
        decimal
      />
      <Text
        name="write"
        label="Written to a cache"
        hint="empty: as input"
        wrong={w("cache_write_usd")}
        value={v?.cache_write_usd}
        decimal
      />
    </>
  );
}

const priced = (v: ModelPrice) => `${usd(v.input_usd)} in, ${usd(v.output_usd)} out a million tokens`;

export default function Keys() {
  const list = useList<BillingKey>("keys", (cursor, signal) => billingKeysList({ cursor, per_page: 50 }, { signal })),
    [pricing, setPricing] = useState(""),
    [provider, setProvider] = useState<Provider>("anthropic");
  useFresh(30, list);
  const prices = useList<AccountPrice & { id: string }>("prices", async (cursor, signal) => {
    const page = await billingPriceList({ cursor, per_page: 100 }, { signal });
    return { ...page, data: page.data.map((x) => ({ ...x, id: x.provider + "/" + x.model })) };
  });
  const cap = useOne("cap", (signal) => billingSpendCapGet({}, { signal }), { counts: ["budgets"] });
  return (
    <>
      <Head title="Keys" />
      <p class="dim">
        Agents have no key: the server calls models for them, with the first of these that fits. Whether a key works
        shows with its first use.
      </p>
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
        row={(k) => (
          <>
            <div>
              <p>
                <strong>{inert(k.label)}</strong> <span class="dim">{k.provider}</span> <code>{k.masked}</code>
              </p>
              <p class="dim">
                priority {k.priority} · {k.kind}
                {k.base_url && <> · {inert(k.base_url)}</>}
                {k.capacity !== null && <> · {k.capacity === 1 ? "one call" : k.capacity + " calls"} at once</>} ·
                verified <Time at={k.last_verified_at} /> · {k.price ? priced(k.price) : "price by the tables"}
              </p>
              {k.last_error && <p class="trouble">{inert(k.last_error)}</p>}
              {pricing === k.id && (
                <Form
                  call={billingKeyPriceSet}
                  submit="Set the price"
                  said="It holds from the next call on."
                  keep
                  done={() => {
                    setPricing("");
                    void list.load();
                  }}
                  read={(f) => ({ id: k.id, price: priceOf(f) ?? null })}
                >
                  {(wrong) => <Prices wrong={wrong} under="price." of={k.price} />}
                </Form>
              )}
            </div>
            <div class="acts">
              <Status
                of={k.status === "ok" ? "verified" : k.status === "failing" ? "failed" : "waiting"}
                say={k.status === "ok" ? "works" : k.status === "failing" ? "fails" : "not used yet"}
              />
              <button
                type="button"
                aria-expanded={pricing === k.id}
                {...gate(billingKeyPriceSet, () => setPricing(pricing === k.id ? "" : k.id))}
              >
                Price
              </button>
              <Act
                call={billingKeyDelete}
                input={{ id: k.id }}
                confirm={`Forget the key ${k.label}? It serves no further call.`}
                done={() => {
                  void list.load();
                  return "Forgotten.";
                }}
              >
                Delete
              </Act>
            </div>
          </>
        )}
      />
      <h2>Add a key</h2>
      <Form
        call={billingKeyAdd}
        submit="Add it"
        said="Added. It is never shown again."
        done={() => {
          setProvider("anthropic");
          void list.load();
        }}
        read={(f) => ({
          provider,
          label: of(f, "label"),
          key: of(f, "key"),
          base_url: of(f, "base_url"),
          model: of(f, "model"),
          kind: of(f, "kind") as "metered",
          capacity: number(f, "capacity"),
          priority: number(f, "priority"),
          price: priceOf(f),
        })}
      >
        {(wrong) => (
          <>
            <Choice
              name="provider"
              label="Provider"
              wrong={wrong}
              value={provider}
              all={providers}
              onPick={(v) => setProvider(v as Provider)}
            />
            {provider !== "scripted" && (
              <Text
                name="key"
                label="Key"
                hint={provider === "compatible" ? "if it needs one" : "never shown again"}
                wrong={wrong}
                type="password"
              />
            )}
            {provider === "compatible" && (
              <>
                <Text name="base_url" label="Address" wrong={wrong} type="url" place="https://models.example.com/v1" />
                <Text name="model" label="Model" hint="empty: the only one there" wrong={wrong} />
              </>
            )}
            <details>
              <summary>More</summary>
              <Text name="label" label="Name" wrong={wrong} />
              <Choice
                name="kind"
                label="Paid"
                wrong={wrong}
                value="metered"
                all={[
                  ["metered", "by the call"],
                  ["subscription", "otherwise"],
                ]}
              />
              <Text name="priority" label="Priority" hint="the lowest first; 100" wrong={wrong} decimal />
              <Text name="capacity" label="Calls at once" hint="further ones go over another key" wrong={wrong} decimal />
              <Prices wrong={wrong} under="price." />
            </details>
          </>
        )}
      </Form>
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
