// What the keys of a card do: its buttons say which of them a key presses, and are found by
// what they are for, not by how they look.
import { createContext } from "preact";
import { useContext, useLayoutEffect, useRef } from "preact/hooks";

// Press is a button: what it does, whether it is at it, and why it cannot, if it cannot.
export type Press = { run: () => unknown; busy?: boolean; off?: string | undefined };

// Presses are the buttons of a card by what they are for: "approve", "skip", "main", and
// "answer" for the form that one fills in.
export type Purpose = "approve" | "skip" | "main" | "answer";
export type Presses = Map<Purpose, () => Press>;

// Card is the card that a button is in.
export const Card = createContext<Presses | undefined>(undefined);

// usePress has a key find the button while it is drawn. Of two for the same the first counts.
export function usePress(of: Purpose | undefined, press: Press) {
  const card = useContext(Card),
    last = useRef(press);
  last.current = press;
  useLayoutEffect(() => {
    if (!card || !of || card.has(of)) return;
    card.set(of, () => last.current);
    return () => void card.delete(of);
  }, [card, of]);
}
