// A deck of cards that are worked through one by one: j and k move, and when one is
// decided the next gets the focus.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { here as address, visit } from "../route";
import { unsent } from "../ui/form";
import { useKeys } from "../ui/keys";
import { Empty, Loading, More, Trouble } from "../ui/parts";
import { keep, placeOf } from "../ui/place";

// Rows are what a deck shows: a List, or several as one.
export type Rows<R> = {
  readonly ids: { readonly value: string[] };
  readonly rows: { get(id: string): { readonly value: R } | undefined };
  readonly state: { readonly value: "loading" | "ready" | "failed" };
  readonly error: { readonly value: string };
  readonly more: boolean;
  load(): Promise<void>;
  older(): Promise<void>;
};

type Props<R> = {
  list: Rows<R>;
  empty: ComponentChildren;
  card: (row: R) => ComponentChildren;
  keys?: Record<string, { does: string; run: (li: HTMLElement) => void }>;
};

export function Deck<R>(p: Props<R>) {
  const ids = p.list.ids.value,
    box = useRef<HTMLUListElement>(null),
    at = useRef(-1),
    on = useRef(""), // the id of the card at hand
    last = useRef<R | undefined>(undefined), // what it shows
    pressed = useRef({ key: "", at: 0 }), // the last key that decides
    keys = useRef(p.keys),
    [, draw] = useState({});
  const place = useRef({ key: visit() && visit() + " deck", at: address.peek().pathname + address.peek().search }),
    // the card that whoever comes back had at hand when they left
    goal = useRef(placeOf(place.current.key, place.current.at)?.mark);
  keys.current = p.keys;
  const now = on.current ? p.list.rows.get(on.current)?.value : undefined,
    here = ids.includes(on.current);
  if (here) last.current = now;
  // What left while somebody types into it stays until they are done: another card in its
  // place would take their letters for decisions.
  const stays = !here && last.current !== undefined && unsent(box.current?.children[at.current]);
  const shown = stays ? ids.toSpliced(at.current, 0, on.current) : ids;
  const card = () => box.current?.children[at.current] as HTMLElement | undefined;
  const note = () => {
    if (!on.current) return;
    goal.current = undefined; // somebody is at a card
    const { key, at: page } = place.current;
    if (key) keep(key, page, { mark: on.current, at: at.current, own: true, first: "", top: 0, count: ids.length });
  };
  const move = (to: number) => {
    at.current = Math.min((box.current?.children.length ?? 0) - 1, Math.max(0, to));
    on.current = shown[at.current] ?? "";
    card()?.focus();
    note();
  };
  // A card that keys would act on has the focus, and so is in sight.
  const ready = p.list.state.value === "ready"; // before, none is drawn
  useEffect(() => {
    const back = ready && goal.current ? ids.indexOf(goal.current) : -1;
    if (back >= 0 && document.activeElement?.matches("body, main h1")) move(back);
  }, [ids, ready]);
  useEffect(() => {
    if (!on.current || stays) return;
    const still = ids.indexOf(on.current);
    if (still >= 0) {
      at.current = still; // others came or left
      return;
    }
    on.current = "";
    // Who has gone elsewhere meanwhile, say into a field of another card, stays there.
    if (document.activeElement !== document.body) return;
    if (ids.length) {
      const was = pressed.current;
      move(at.current);
      pressed.current = { ...was, at: performance.now() }; // the same key, now, was meant for the one that left
    } else document.querySelector<HTMLElement>("main h1")?.focus();
  }, [ids, stays]);
  // once tells whether a key is meant for the card at hand. The second of two quick presses,
  // like that of a double click, was meant for what it showed at the first.
  const once = (key: string): boolean => {
    const was = pressed.current,
      at = performance.now();
    pressed.current = { key, at };
    return was.key !== key || at - was.at > 400;
  };
  const step = (by: number) => {
    pressed.current = { key: "", at: 0 }; // what comes next is meant for that one
    move(at.current + by);
  };
  useKeys([
    { keys: "j, ArrowDown", does: "next", group: "Lists", run: () => step(1) },
    { keys: "k, ArrowUp", does: "previous", group: "Lists", run: () => step(-1) },
    ...Object.entries(p.keys ?? {}).map(([k, v]) => ({
      keys: k,
      does: v.does,
      run: () => {
        const li = card();
        if (!once(k)) return;
        if (li) keys.current?.[k]?.run(li);
        else move(0);
      },
    })),
  ]);
  if (p.list.state.value === "loading") return <Loading />;
  if (p.list.state.value === "failed")
    return <Trouble error={new Error(p.list.error.value)} again={() => void p.list.load()} />;
  const focus = (e: FocusEvent) => {
    const li = (e.target as Element).closest("li[data-id]");
    if (!li) return;
    pressed.current = { key: "", at: 0 }; // somebody went there
    at.current = [...box.current!.children].indexOf(li);
    if (on.current === shown[at.current]) return;
    on.current = shown[at.current] ?? "";
    last.current = p.list.rows.get(on.current)?.value;
    note();
  };
  const left = () => stays && draw({});
  return (
    <>
      {shown.length === 0 ? (
        <Empty>{p.empty}</Empty>
      ) : (
        <>
          {stays && (
            <p class="trouble" role="alert">
              What you write about was decided elsewhere.
            </p>
          )}
          <ul class="cards" ref={box} onFocusIn={focus} onFocusOut={left}>
            {shown.map((id) => {
              const r = stays && id === on.current ? last.current : p.list.rows.get(id)?.value;
              return r && p.card(r);
            })}
          </ul>
        </>
      )}
      <More of={p.list} />
    </>
  );
}
