// Plan and payment: what the account has, what it pays for, and the ways to Stripe's pages.
import { billingCheckout, billingGet, billingPortal, type Billing, type BillingSubscription } from "../../client.gen";
import { useOne } from "../../list";
import { inert } from "../../ui/ansi";
import { useEvery } from "../../ui/every";
import { Form } from "../../ui/form";
import { number, Text } from "../../ui/inputs";
import { count, many, usd } from "../../ui/money";
import { Act, Coming, Empty, Fact, Facts, Figure, Head } from "../../ui/parts";
import { Status, words } from "../../ui/status";
import { Time } from "../../ui/time";

// leave takes the browser to a page of the provider.
const leave = (page: { url: string }) => {
  if (page.url.startsWith("https://")) location.assign(page.url);
};

const named = { seats: "Seats", oss_donor: "Donor to open source" };

export default function Payment() {
  const one = useOne("billing", (signal) => billingGet({}, { signal })),
    b = one.value.value;
  useEvery(10, () => void one.load(), [one]); // what was paid counts some seconds later
  return (
    <>
      <Head title="Plan and payment">{b && <span class="dim">{words(b.tier)}</span>}</Head>
      {!b ? (
        <Coming of={one} />
      ) : (
        <>
          <div class="figures">
            <Figure n={count(b.seats)} name="AI developers of its own" one="AI developer of its own" />
            <Figure n={count(b.paid_seats)} name="of them paid for" />
            <Figure n={usd(b.spend.spent_usd)} name={"spent on models in " + b.spend.period} href="/ui/usage" />
          </div>
          <Facts>
            <Fact name="Private repositories">
              {b.private_repos ? (
                "covered"
              ) : (
                <>
                  not covered: pay for seats, or <a href="/ui/settings/oss">apply as an open-source project</a>
                </>
              )}
            </Fact>
            <Fact name="Donor to open source">{b.oss_donor ? "yes" : "no"}</Fact>
            {b.payment.read_at && (
              <Fact name="Last asked at Stripe">
                <Time at={b.payment.read_at} />
              </Fact>
            )}
          </Facts>
          {b.payment.last_error && (
            <p class="hold">What is shown may be old: {inert(b.payment.last_error)}. It is asked again by itself.</p>
          )}
          {b.payment.provider === null ? (
            <p class="dim">
              This server takes no payment, and needs none. Its operators set the tier and the number of AI developers.
            </p>
          ) : (
            <Paying of={b} />
          )}
          {b.subscriptions.length > 0 && (
            <>
              <h2>Subscriptions</h2>
              <ul class="cards" aria-label="Subscriptions">
                {b.subscriptions.map((s) => (
                  <Paid key={s.id + s.kind} of={s} grace={b.payment.grace_days} />
                ))}
              </ul>
            </>
          )}
        </>
      )}
    </>
  );
}

// Paying are the ways to the pages of the provider.
function Paying(p: { of: Billing }) {
  const has = (kind: string) =>
      p.of.subscriptions.some((s) => s.kind === kind && s.in_force && s.status !== "canceled"),
    sold = p.of.payment.sells.filter((kind) => !has(kind));
  return (
    <>
      <h2>Pay</h2>
      {p.of.payment.customer && (
        <p>
          <Act call={billingPortal} input={{}} done={leave}>
            Cards, invoices and subscriptions
          </Act>
        </p>
      )}
      {sold.includes("seats") && (
        <Form
          call={billingCheckout}
          submit="Pay for seats"
          keep
          done={leave}
          read={(f) => ({ kind: "seats" as const, quantity: number(f, "quantity") })}
        >
          {(wrong) => (
            <Text
              name="quantity"
              label="Seats"
              hint="AI developers that work at once"
              wrong={wrong}
              value={Math.max(1, p.of.seats)}
              decimal
            />
          )}
        </Form>
      )}
      {sold.includes("oss_donor") && (
        <p>
          <Act call={billingCheckout} input={{ kind: "oss_donor" as const }} done={leave}>
            Become a donor to open source
          </Act>
        </p>
      )}
      {sold.length === 0 && !p.of.payment.customer && <Empty>Nothing is sold here.</Empty>}
    </>
  );
}

// Paid is one subscription: what it gives, and until when.
function Paid(p: { of: BillingSubscription; grace: number }) {
  const s = p.of;
  return (
    <li class="item">
      <div>
        <p>
          <strong>{named[s.kind]}</strong>{" "}
          <Status
            of={s.payment_failed_at && s.in_force ? "held" : s.in_force ? "enabled" : "ended"}
            say={words(s.status)}
          />
        </p>
        <p class="dim">
          {s.kind === "seats" && many(s.quantity, "seat") + ", "}
          since <Time at={s.created_at} />
          {s.paid_until && (
            <>
              , end of what was paid: <Time at={s.paid_until} />
            </>
          )}
        </p>
        {s.lowers_at && (
          <p class="hold">
            {many(s.seats, "seat")} until <Time at={s.lowers_at} />, then {count(s.quantity)}
          </p>
        )}
        {s.payment_failed_at && (
          <p class="hold">
            A payment has failed <Time at={s.payment_failed_at} />. The plan stands for {many(p.grace, "day")} after
            that.
          </p>
        )}
        {s.ends_at && s.in_force && !s.payment_failed_at && (
          <p class="hold">
            Ends <Time at={s.ends_at} />
          </p>
        )}
      </div>
    </li>
  );
}
