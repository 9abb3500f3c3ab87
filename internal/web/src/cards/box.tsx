// What boxes look like wherever they are shown.
import type { Box, OrgMember } from "../client.gen";
import { inert } from "../ui/ansi";
import { Status } from "../ui/status";

// stateOf is what a box is, in one word: its standing if it is going, else its presence.
export const stateOf = (b: Box) => b.state !== "enrolled" ? b.state : b.presence.unfit ? "unfit" : b.presence.status;

export function BoxStatus(p: { of: Box }) {
  return <Status of={stateOf(p.of)} noun="box" />;
}

// Slots shows places for runs as squares.
export function Slots(p: { of: Box }) {
  const b = p.of, busy = Math.min(b.presence.active, b.slots), drawn = Math.min(b.slots, 32);
  return <span class="slots" role="img" aria-label={`${busy} of ${b.slots} slots busy`} title={`${busy} of ${b.slots} busy`}>
    {Array.from({ length: drawn }, (_, i) => <i key={i} class={i < busy ? "busy" : undefined} />)}{b.slots > drawn && <small>+{b.slots - drawn}</small>}</span>;
}

export function ownerOf(b: Box, members: OrgMember[] = []): string {
  if (b.owner.target !== "user") return b.owner.target === "shared" ? "every account" : "this account";
  const m = members.find((x) => x.user_id === b.owner.id);
  return m ? inert(m.login) : "one member";
}
