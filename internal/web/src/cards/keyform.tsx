// The form of a key of a model provider, for the account's pool and for one's own.
import { useRef, useState } from "preact/hooks";
import { providers } from "../client.gen";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Choice, number, of, Text } from "../ui/inputs";
import { many } from "../ui/money";
import { Act } from "../ui/parts";
import { own, paid, type Pool } from "./key";
import { priceOf, Prices } from "./price";

export type Provider = (typeof providers)[number];

// addressed tells whether each key of a provider has an address of its own.
export const addressed = (provider: string) => provider === "compatible" || provider === "azure";

const hints: Partial<Record<Provider, string>> = {
  compatible: "if it needs one",
  bedrock: "REGION:ACCESS_KEY_ID:SECRET_ACCESS_KEY",
};

// KeyForm adds a key to a pool.
export function KeyForm(p: { pool: Pool; changed: () => void }) {
  const [provider, setProvider] = useState<Provider>("anthropic"),
    [offered, offer] = useState<string[]>(),
    at = useRef<HTMLSpanElement>(null),
    mine = p.pool === own;
  return (
    <Form
      call={p.pool.add}
      submit="Add it"
      said="Added. It is never shown again."
      done={() => {
        setProvider("anthropic");
        offer(undefined);
        p.changed();
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
        price: mine ? undefined : priceOf(f),
      })}
      also={
        <span ref={at}>
          <Act
            call={p.pool.offers}
            input={() => {
              const f = new FormData(at.current!.closest("form")!);
              return { provider, key: of(f, "key"), base_url: of(f, "base_url") };
            }}
            done={(out) => offer(out.models)}
          >
            Which models?
          </Act>
        </span>
      }
    >
      {(wrong) => (
        <>
          <Choice
            name="provider"
            label="Provider"
            wrong={wrong}
            value={provider}
            all={providers}
            onPick={(v) => {
              setProvider(v as Provider);
              offer(undefined);
            }}
          />
          {provider !== "scripted" && (
            <Text name="key" label="Key" hint={hints[provider] ?? "never shown again"} wrong={wrong} type="password" />
          )}
          {addressed(provider) && (
            <Text
              name="base_url"
              label="Address"
              wrong={wrong}
              type="url"
              place={provider === "azure" ? "https://NAME.openai.azure.com" : "https://models.example.com/v1"}
            />
          )}
          {addressed(provider) && !mine && (
            <Text
              name="model"
              label={provider === "azure" ? "Deployment" : "Model"}
              hint={provider === "azure" ? "its name at Azure" : "empty: the only one there"}
              wrong={wrong}
              {...(offered && { among: offered })}
            />
          )}
          {offered && (
            <p class="dim" role="status">
              {offered.length
                ? `${many(offered.length, "model")}: ${inert(offered.join(", "))}`
                : "The provider lists no model."}
            </p>
          )}
          <details>
            <summary>More</summary>
            <Text name="label" label="Name" wrong={wrong} />
            <Choice name="kind" label="Paid" wrong={wrong} value="metered" all={paid} />
            <Text name="priority" label="Priority" hint="the lowest first; 100" wrong={wrong} decimal />
            <Text name="capacity" label="Calls at once" hint="empty: no limit is known" wrong={wrong} decimal />
            {!mine && <Prices wrong={wrong} under="price." />}
          </details>
        </>
      )}
    </Form>
  );
}
