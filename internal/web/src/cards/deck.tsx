// A deck of cards that are worked through one by one: j and k move, and when one is
// decided the next gets the focus.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { List } from "../list";
import { useKeys } from "../ui/keys";
import { Empty, Loading, Trouble } from "../ui/parts";

type Props<R extends { id: string }> = { list: List<R>; empty: ComponentChildren; card: (row: R) => ComponentChildren; keys?: Record<string, { does: string; run: (li: HTMLElement) => void }> };

export function Deck<R extends { id: string }>(p: Props<R>) {
  const ids = p.list.ids.value, box = useRef<HTMLUListElement>(null), last = useRef(0), at = useRef(-1), keys = useRef(p.keys);
  keys.current = p.keys;
  const card = () => box.current?.children[at.current] as HTMLElement | undefined;
  const move = (to: number) => { at.current = Math.min((box.current?.children.length ?? 0) - 1, Math.max(0, to)); card()?.focus(); };
  useEffect(() => {
    if (ids.length < last.current && at.current >= 0) { if (ids.length) move(at.current); else document.querySelector<HTMLElement>("main h1")?.focus(); }
    last.current = ids.length;
  }, [ids]);
  useKeys([{ keys: "j, ArrowDown", does: "next", group: "Lists", run: () => move(at.current + 1) }, { keys: "k, ArrowUp", does: "previous", group: "Lists", run: () => move(at.current - 1) },
    ...Object.entries(p.keys ?? {}).map(([k, v]) => ({ keys: k, does: v.does, run: () => { const li = card(); if (li) keys.current?.[k]?.run(li); else move(0); } }))]);
  if (p.list.state.value === "loading") return <Loading />;
  if (p.list.state.value === "failed") return <Trouble error={new Error(p.list.error.value)} again={() => void p.list.load()} />;
  const focus = (e: FocusEvent) => { const li = (e.target as Element).closest("li"); if (li) at.current = [...box.current!.children].indexOf(li); };
  return <>{ids.length === 0 ? <Empty>{p.empty}</Empty> : <ul class="cards" ref={box} onFocusIn={focus}>{ids.map((id) => { const r = p.list.rows.get(id)?.value; return r && p.card(r); })}</ul>}
    {p.list.more && <p><button type="button" onClick={() => void p.list.older()}>Show more</button></p>}</>;
}
