// What can be done on the page that is shown: its own buttons, by their names.
import type { Command } from "./palette";
import { shut } from "./gate";
import { tell } from "./toast";

const said = (e: Element | null | undefined) =>
  (e?.getAttribute("aria-label") ?? (e as HTMLElement | null | undefined)?.innerText ?? "").replace(/\s+/g, " ").trim();

// from is what had the focus at the last key that was pressed in the page.
let from: Element | undefined;
addEventListener(
  "keydown",
  (e) => {
    if (e.target instanceof Element && !e.target.closest("dialog")) from = e.target;
  },
  true,
);

// actions lists the buttons of the card that has the focus, or else of the page. Those of
// its object are outside of lists and are no choice of a part of the page; with more, all
// are listed.
export function actions(more: boolean): Command[] {
  const out: Command[] = [],
    card = !more && from?.isConnected ? from.closest("#main .cards > li") : null;
  for (const e of document.querySelectorAll<HTMLElement>("#main button, #main a.button, #main summary")) {
    if (
      !e.getClientRects().length ||
      e.closest(".vlist, .cmd, .dag, .tree, .toc, .trouble") ||
      e.matches(".id, [type=reset]")
    )
      continue;
    const name = said(e),
      tabs = e.closest(".tabs"),
      item = e.closest(".cards > li, tbody tr");
    if (!name || (!more && (card ? item !== card : tabs || item))) continue;
    const off = shut(e),
      of = tabs ?? item?.querySelector("a, b, strong");
    const why = off ? e.title || "Not possible now" : undefined;
    out.push({
      name,
      hint: why ?? (of ? said(of).slice(0, 60) : "On this page"),
      run: () => {
        if (off) tell(why!);
        else {
          e.focus();
          e.click();
        }
      },
    });
  }
  return out;
}
