// What boxes look like wherever they are shown.
import type { Box } from "../client.gen";
import { Status } from "../ui/status";
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
