// What can be done on the page that is shown: its own buttons, by their names.
import type { Command } from "./palette";
import { tell } from "./toast";

const said = (e: Element | null | undefined) => (e?.getAttribute("aria-label") ?? (e as HTMLElement | null | undefined)?.innerText ?? "").replace(/\s+/g, " ").trim();

// actions lists the buttons of the page. Those of the object are outside of lists and are
// no choice of a part of the page; with more, all are listed.
export function actions(more: boolean): Command[] {
  const out: Command[] = [];
  for (const e of document.querySelectorAll<HTMLElement>("#main button, #main a.button, #main summary")) {
    if (!e.getClientRects().length || e.closest(".vlist, .code, .dag, .tree, .toc, .trouble") || e.matches(".id, [type=reset]")) continue;
    const name = said(e), tabs = e.closest(".tabs"), item = e.closest(".cards > li, tbody tr");
    if (!name || (!more && (tabs || item))) continue;
    const off = e.matches(":disabled"), of = tabs ?? item?.querySelector("a, b, strong");
    const why = off ? e.title || "Not possible now" : undefined;
    out.push({ name, hint: why ?? (of ? said(of).slice(0, 60) : "On this page"), run: () => { if (off) tell(why!); else { e.focus(); e.click(); } } });
  }
  return out;
}
