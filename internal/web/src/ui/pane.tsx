// The pane beside a list: what there is to know of the marked row, so that who goes
// through the rows need not open each. There is room for one from 1200 px; whether it is
// shown is a person's choice.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { beside } from "../look";

const room = matchMedia("(min-width: 1200px)"),
  wide = signal(room.matches);
room.addEventListener("change", () => {
  wide.value = room.matches;
});

export const paneWidth = 380; // px, of which the stylesheet keeps 16 free

export const fits = () => wide.value;
export const shown = () => fits() && beside.chosen.value === "on";

export const turn = () => beside.choose(beside.chosen.value === "on" ? "off" : "on");

// PaneSwitch is the button of a page whose list has a pane.
export function PaneSwitch() {
  return fits() ? (
    <button type="button" aria-pressed={beside.chosen.value === "on"} onClick={turn}>
      Details
    </button>
  ) : null;
}

const scrolls = /^(Arrow|Page|Home|End)/;

// Pane keeps the keys that scroll it, which move through the list elsewhere.
export function Pane(p: { label: string; children: ComponentChildren }) {
  return (
    <aside
      class="pane"
      aria-label={p.label}
      tabIndex={0}
      style={{ width: `${paneWidth - 16}px` }}
      onKeyDown={(e) => {
        if (scrolls.test(e.key)) e.stopPropagation();
      }}
    >
      {p.children}
    </aside>
  );
}
