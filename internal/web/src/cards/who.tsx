// Who did something, in words: the name of an actor in the place of its label.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { account } from "../api";
import { actorNames, type ActorName } from "../client.gen";
import { me } from "../session";
import { inert } from "../ui/ansi";
import { table } from "../own";

// Who actors of the account that is looked at are, by their labels; undefined for one whom
// the server does not know. Rows that come at once are asked about in one call.
type Names = Map<string, ActorName | undefined>;
const none: Names = new Map(),
  known = signal({ of: "", names: none }),
  wanted = new Set<string>(),
  most = 100; // labels that the server takes in one call
let reading: Promise<void> | undefined;

const space = () => account.value || me.value?.account.id || "";
const names = () => (known.value.of === space() ? known.value.names : none);

// learn finds out who some actors are, unless that is known.
export async function learn(labels: string[]): Promise<void> {
  for (const l of labels) if (words[kindOf(l)]?.named && !names().has(l)) wanted.add(l);
  if (wanted.size) reading ??= Promise.resolve().then(read);
  await reading;
}

async function read() {
  while (wanted.size) {
    const some = [...wanted].slice(0, most),
      of = space();
    for (const l of some) wanted.delete(l);
    const page = await actorNames({ actor: some }).catch(() => undefined);
    if (!page || of !== space()) continue;
    const now = new Map(names());
    for (const l of some) now.set(l, undefined);
    for (const n of page.data) now.set(n.actor, n);
    known.value = { of, names: now };
  }
  reading = undefined;
}

// What each kind of actor is called without its name, and before it if it may have one.
const words: Record<string, { alone: string; named?: string | true }> = table({
  user: { alone: "somebody", named: true },
  pat: { alone: "a token", named: "the token" },
  box: { alone: "a box", named: "the box" },
  source: { alone: "a connected system", named: "the source" },
  schedule: { alone: "a schedule", named: "the schedule" },
  fix_link: { alone: "the form of a blocker" },
  policy: { alone: "the policy" },
  system: { alone: "Yardmaster" },
});
const kindOf = (actor: string) => actor.split(":", 1)[0]!;

// whoOf is an actor in words, as far as it is known who that is.
export function whoOf(actor: string): string {
  const n = names().get(actor),
    kind = kindOf(actor),
    word = words[kind];
  if (n && kind === "user") return inert(n.name) + (n.gone ? " (left)" : "");
  if (n && word?.named) return `${word.named} ${inert(n.name)}`;
  if (kind === "code-host") return `${inert(actor.slice(kind.length + 1))} (at the code host)`;
  return word?.alone ?? inert(kind);
}

// people are those who are known by now, by name.
export const people = () =>
  [...names().values()].filter((n) => n?.actor.startsWith("user:")).map((n) => [n!.actor, whoOf(n!.actor)] as const);

// Actor is who an actor is.
export function Actor(p: { of: string }) {
  useEffect(() => void learn([p.of]), [p.of]);
  return <>{whoOf(p.of)}</>;
}

// Who is an actor as the person who looks would say it.
export function Who(p: { of: string }) {
  const own = me.value?.user?.id;
  return own && p.of === "user:" + own ? <>you</> : <Actor of={p.of} />;
}
