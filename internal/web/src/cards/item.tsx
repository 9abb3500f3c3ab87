// A card of a deck, of which keys find the buttons by what they are for.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo } from "preact/hooks";
import { Card, type Presses } from "../ui/press";

const shown = new Map<string, Presses>();

// cardOf is what the buttons of the card of an object do, while it is drawn.
export const cardOf = (id: string): Presses | undefined => shown.get(id);

export function Item(p: { id: string; pr?: string; head?: string; tall?: boolean; children: ComponentChildren }) {
  const own = useMemo<Presses>(() => new Map(), []);
  useLayoutEffect(() => {
    shown.set(p.id, own);
    return () => {
      if (shown.get(p.id) === own) shown.delete(p.id);
    };
  }, [p.id]);
  return (
    <Card.Provider value={own}>
      <li class={p.tall ? "item tall" : "item"} data-id={p.id} data-pr={p.pr} data-head={p.head} tabIndex={-1}>
        {p.children}
      </li>
    </Card.Provider>
  );
}
