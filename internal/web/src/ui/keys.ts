// Keys. A page says which keys do what while it is shown; single letters never fire in
// a field, and can be switched off.
import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";

export type Binding = { keys: string; does: string; run: (e: KeyboardEvent) => void; group?: string };

export const single = signal(localStorage.getItem("keys") !== "off");
export function setSingle(on: boolean) {
  localStorage.setItem("keys", on ? "on" : "off");
  single.value = on;
}

type Layer = { current: Binding[] };
const layers: Layer[] = [];

// all are the keys that do something now.
export const all = (): Binding[] => layers.flatMap((l) => l.current);

// bind makes keys work until the returned function is called. Later ones go first.
export function bind(list: Binding[], layer: Layer = { current: list }): () => void {
  layers.push(layer);
  return () => {
    layers.splice(layers.indexOf(layer), 1);
  };
}

// useKeys binds keys while a component is shown: those of its newest drawing.
export function useKeys(list: Binding[]) {
  const layer = useRef(list);
  layer.current = list;
  useLayoutEffect(() => bind(list, layer), []);
}

const inField = (t: EventTarget | null) =>
  t instanceof Element && !!t.closest("input:not([type=checkbox]):not([type=radio]),textarea,select,[contenteditable]");

// presses says that a key presses the control that has the focus.
const presses = (e: KeyboardEvent) =>
  (e.key === "Enter" || e.key === " ") &&
  e.target instanceof Element &&
  !!e.target.closest("a[href],button,summary,label,input");

// moves are the keys that may be held: the others do a thing, once for each press.
const moves = /^([jknp[\]]|Arrow.*|Page.*)$/;

let first = "",
  at = 0;

export function start() {
  addEventListener("keydown", (e) => {
    if (
      e.defaultPrevented ||
      e.isComposing ||
      (e.repeat && !moves.test(e.key)) ||
      (!single.value && e.key.length === 1) ||
      e.ctrlKey ||
      e.metaKey ||
      e.altKey ||
      inField(e.target) ||
      presses(e)
    )
      return;
    if (document.querySelector("dialog[open]")) return;
    const pair = first && Date.now() - at < 1500 ? first + " " + e.key : "";
    first = "";
    for (const want of pair ? [pair, e.key] : [e.key]) {
      for (const layer of [...layers].reverse()) {
        const hit = layer.current.find((b) => b.keys.split(", ").includes(want));
        if (!hit) continue;
        e.preventDefault();
        hit.run(e);
        return;
      }
    }
    if (all().some((b) => b.keys.startsWith(e.key + " "))) {
      first = e.key;
      at = Date.now();
    }
  });
}
