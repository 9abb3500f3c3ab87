// The form of a gift to open source: money over a key, a key, or a box.
import { useState } from "preact/hooks";
import { whole } from "../whole";
import { Problem, type Call } from "../api";
import {
  billingKeysList,
  boxList,
  donationCreate,
  type BillingKey,
  type Box,
  type Donation,
  type DonationCreateInput,
} from "../client.gen";
import { useOne } from "../list";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Choice, lines, number, of, Text } from "../ui/inputs";
import { Trouble } from "../ui/parts";
import { addressed } from "./keyform";
import { proven } from "./reauth";

const kinds = [
  ["money", "money, up to an amount"],
  ["llm", "a key of a model provider"],
  ["compute", "a box"],
] as const;
type Kind = (typeof kinds)[number][0];

// A key with an address of its own is no gift, and one that answers by a script none of use.
const lent = (k: BillingKey) => !addressed(k.provider) && k.provider !== "scripted";

// useGiven are the keys and boxes that the person may see, to be chosen from and to be named.
export function useGiven() {
  const keys = useOne("keys", (signal) =>
      may(billingKeysList)
        ? whole((cursor) => billingKeysList({ cursor, per_page: 100 }, { signal }))
        : Promise.resolve(none<BillingKey>()),
    ),
    boxes = useOne("boxes", (signal) =>
      may(boxList)
        ? whole((cursor) => boxList({ cursor, per_page: 100, filter: ["state:enrolled"] }, { signal }))
        : Promise.resolve(none<Box>()),
    );
  return {
    keys: keys.value.value?.data ?? [],
    boxes: boxes.value.value?.data ?? [],
    read: { llm: keys, money: keys, compute: boxes } satisfies Record<Kind, unknown>, // how that went
  };
}
const none = <R,>() => ({ data: [] as R[], next_cursor: null });

const nameOf = (k: BillingKey) => `${k.label}, ${k.provider} ${k.masked}`;

export function Give(p: { done: (d: Donation) => void; from: ReturnType<typeof useGiven> }) {
  const [kind, setKind] = useState<Kind>("money"),
    [pool, setPool] = useState(false),
    [pay, setPay] = useState(false), // whether only donors may give it
    [prove, setProve] = useState(false); // whether the session is too old for a box
  const { keys, boxes } = p.from,
    unread = p.from.read[kind],
    usable = keys.filter((k) => lent(k) && (kind !== "money" || k.kind !== "subscription"));
  const call = (prove ? proven(donationCreate) : donationCreate) as Call<
    DonationCreateInput & { password?: string },
    Donation
  >;
  return (
    <Form
      call={call}
      submit={kind === "money" ? "Give the money" : kind === "llm" ? "Give the key" : "Give the box"}
      keep
      done={p.done}
      failed={(e) => {
        const paid = e instanceof Problem && e.status === 402;
        setPay(paid);
        if (paid) return true;
        const old = e instanceof Problem && e.slug === "reauth-required" && !prove;
        if (old) setProve(true);
        return old;
      }}
      read={(f) => {
        const key = keys.find((k) => k.id === of(f, "key_id"));
        const models = lines(f, "models").map((model) => ({ provider: key?.provider ?? "anthropic", model }));
        return {
          kind,
          target: pool ? "pool" : "project",
          ...(!pool && { repo: of(f, "repo") ?? "" }),
          ...(kind === "compute" ? { box_id: of(f, "box_id") } : { key_id: of(f, "key_id") }),
          ...(kind === "money" && { usd: number(f, "usd") }),
          ...(kind !== "compute" && models.length && { models }),
          ...(prove && { password: String(f.get("password") ?? "") }),
        } as DonationCreateInput;
      }}
    >
      {(wrong) => (
        <>
          <Choice
            name="kind"
            label="What you give"
            wrong={wrong}
            value={kind}
            all={kinds}
            onPick={(v) => setKind(v as Kind)}
          />
          <Choice
            name="target"
            label="To"
            wrong={wrong}
            value=""
            all={[
              ["", "one repository"],
              ["pool", "every repository that takes gifts"],
            ]}
            onPick={(v) => setPool(v === "pool")}
          />
          {!pool && (
            <Text name="repo" label="Repository" hint="owner/name; it must take gifts" wrong={wrong} place="acme/web" />
          )}
          {kind === "compute" ? (
            <Choice
              key={boxes.length}
              name="box_id"
              label="Box"
              hint="it serves nothing else until you take it back"
              wrong={wrong}
              all={boxes.map((b) => [b.id, inert(b.name)] as const)}
            />
          ) : (
            <Choice
              key={kind + usable.length}
              name="key_id"
              label={kind === "money" ? "Paid over the key" : "Key"}
              hint={kind === "money" ? "it stays of use here" : "it serves nothing else until you take it back"}
              wrong={wrong}
              all={usable.map((k) => [k.id, inert(nameOf(k))] as const)}
            />
          )}
          {kind === "money" && (
            <Text name="usd" label="At most" hint="USD, together" wrong={wrong} decimal place="20.00" />
          )}
          {kind !== "compute" && (
            <Text
              name="models"
              label="No other models than"
              hint="one a line; empty: every one of the provider"
              wrong={wrong}
              rows={2}
              code
            />
          )}
          {unread.error.value ? (
            <Trouble error={unread.error.value} again={() => void unread.load()} />
          ) : (kind === "compute" ? boxes : usable).length > 0 ? null : (
            <p class="hold">
              {kind === "compute" ? (
                <>
                  You have no box to give. <a href="/ui/boxes?add=1">Add a box</a>
                </>
              ) : (
                <>
                  You have no key that can be given: not one with an address of its own
                  {kind === "money" && ", nor a subscription"}. <a href="/ui/settings/keys?add=1">Add a key</a>
                </>
              )}
            </p>
          )}
          {pay && kind !== "money" && (
            <p class="trouble" role="alert">
              A key or a box is given by donors to open source. <a href="/ui/settings/payment">Become one</a>, or give
              money.
            </p>
          )}
          {prove && (
            <>
              <p class="hold" role="status">
                Whoever gives a box away has signed in within the last hour. Show that it is you, and it goes on.
              </p>
              <Text
                name="password"
                label="Your password"
                hint="or the code of six digits from a mail"
                wrong={wrong}
                type="password"
                focus
              />
            </>
          )}
        </>
      )}
    </Form>
  );
}
