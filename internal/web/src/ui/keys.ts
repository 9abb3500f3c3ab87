// Keys. A page says which keys do what while it is shown; single letters never fire in
// a field, and can be switched off.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

export type Binding = { keys: string; does: string; run: (e: KeyboardEvent) => void; group?: string };

export const single = signal(localStorage.getItem("keys") !== "off");
export function setSingle(on: boolean) {
  localStorage.setItem("keys", on ? "on" : "off");
  single.value = on;
}

const layers: Binding[][] = [];
export const shown = signal<Binding[]>([]);

// bind makes keys work until the returned function is called. Later ones go first.
export function bind(list: Binding[]): () => void {
  layers.push(list);
  shown.value = layers.flat();
  return () => {
    layers.splice(layers.indexOf(list), 1);
    shown.value = layers.flat();
  };
}

// useKeys binds keys while a component is shown.
export function useKeys(list: Binding[], deps: unknown[] = []) {
  useEffect(() => bind(list), deps);
}

const inField = (t: EventTarget | null) => t instanceof Element && !!t.closest("input:not([type=checkbox]):not([type=radio]),textarea,select,[contenteditable]");

let first = "", at = 0;

export function start() {
  addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.isComposing || !single.value || e.ctrlKey || e.metaKey || e.altKey || inField(e.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const pair = first && Date.now() - at < 1500 ? first + " " + e.key : "";
    first = "";
    for (const want of pair ? [pair, e.key] : [e.key]) {
      for (const layer of [...layers].reverse()) {
        const hit = layer.find((b) => b.keys.split(", ").includes(want));
        if (!hit) continue;
        e.preventDefault();
        hit.run(e);
        return;
      }
    }
    if (layers.flat().some((b) => b.keys.startsWith(e.key + " "))) { first = e.key; at = Date.now(); }
  });
}
