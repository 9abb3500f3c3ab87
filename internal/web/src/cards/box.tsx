// What boxes look like wherever they are shown.
import { boxList, type Box } from "../client.gen";
import { useOne } from "../list";
import { whole } from "../whole";
import { inert } from "../ui/ansi";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";
import { Actor } from "./who";

// stateOf is what a box is, in one word: its standing if it is going, else its presence.
export const stateOf = (b: Box) => (b.state !== "enrolled" ? b.state : b.presence.unfit ? "unfit" : b.presence.status);

export function BoxStatus(p: { of: Box }) {
  return <Status of={stateOf(p.of)} noun="box" />;
}

// Slots shows places for runs as squares.
export function Slots(p: { of: Box }) {
  const b = p.of,
    busy = Math.min(b.presence.active, b.slots),
    drawn = Math.min(b.slots, 32);
  return (
    <span class="slots" role="img" aria-label={`${busy} of ${b.slots} slots busy`} title={`${busy} of ${b.slots} busy`}>
      {Array.from({ length: drawn }, (_, i) => (
        <i key={i} class={i < busy ? "busy" : undefined} />
      ))}
      {b.slots > drawn && <small>+{b.slots - drawn}</small>}
    </span>
  );
}

// Owner is for whom a box works.
export function Owner(p: { of: Box }) {
  const o = p.of.owner;
  if (p.of.consent)
    return (
      <>
        this account; <Actor of={"user:" + p.of.consent_of} /> is asked to own it
      </>
    );
  if (o.target === "user" && o.id) return <Actor of={"user:" + o.id} />;
  return <>{o.target === "shared" ? "every account" : o.target === "user" ? "one member" : "this account"}</>;
}

// Outside are the boxes of other accounts that may take work of this one; nothing where
// there are none. No page is about one of them.
export function Outside() {
  const one = useOne(
      "outside",
      (signal) => whole((cursor) => boxList({ cursor, filter: ["outside:true"], per_page: 100 }, { signal })),
      {
        counts: ["runners"],
      },
    ),
    rows = one.value.value?.data ?? [];
  if (rows.length === 0) return null;
  return (
    <section class="apart" aria-label="Boxes of other accounts">
      <h2>Boxes of other accounts</h2>
      <p class="dim">
        They may take work of this account: because its settings let boxes from outside in, or because an operator of
        the server shares them.
      </p>
      <ul class="cards">
        {rows.map((b) => (
          <li key={b.id} class="item">
            <div>
              <p>
                <BoxStatus of={b} /> <strong>{inert(b.name || b.id.slice(0, 8))}</strong> of {inert(b.outside!.account)}{" "}
                · {b.presence.active} of your runs
              </p>
              <p class="dim">
                {b.outside!.right === "shared" ? (
                  "An operator of the server shares it with every account."
                ) : (
                  <>
                    <Owner of={b} /> agreed to it <Time at={b.outside!.agreed_at} />, for their own tasks.
                  </>
                )}{" "}
                It is given: {b.outside!.given.map(words).join(", ")}; a check gets no model token.
              </p>
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
