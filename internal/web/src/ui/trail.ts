// Where one came from: the objects of the list in which a link was followed, in their
// order, and the address of the list with its filter.
import { go, here, visit } from "../route";
import { tell } from "./toast";

let came = { list: "", visit: "", hrefs: [] as string[], moved: (_: number) => {} };

// remember keeps the objects of the list that is shown. moved is told which of them is
// shown after a step.
export function remember(hrefs: string[], moved = (_: number) => {}) {
  came = { list: here.peek().pathname + here.peek().search, visit: visit(), hrefs, moved };
}

const path = (href: string) => new URL(href, location.href).pathname;
const place = () => came.hrefs.findIndex((h) => path(h) === here.peek().pathname);

// step shows the object so many places further, at the same part of its page.
export function step(by: number) {
  const at = place(),
    to = came.hrefs[at + by],
    tab = here.peek().searchParams.get("tab");
  if (at < 0) tell("You did not come here from a list.");
  else if (to === undefined) tell(by < 0 ? "It is the first of the list." : "It is the last of the list.");
  else {
    came.moved(at + by);
    go(tab && !to.includes("?") ? to + "?tab=" + encodeURIComponent(tab) : to);
  }
}

// up shows the list one came from, as it was left, and else the page at a path.
export function up(to: string) {
  if (place() >= 0) go(came.list, { as: came.visit });
  else go(to === "/ui" ? "/ui/" : to);
}

const parent = (href: string) => path(href).replace(/\/[^/]*$/, "");

// start remembers the lists that are no grids, in which a link is one of several to
// objects of one sort. A grid knows more rows than are drawn, and remembers itself.
export function start() {
  document.addEventListener(
    "click",
    (e) => {
      const a = (e.target as Element).closest?.("main a[href^='/ui/']"),
        list = a?.closest("[role=grid]") ? null : a?.closest(".cards, table");
      if (!a || !list) return;
      const own = parent(a.getAttribute("href")!);
      const all = [...list.querySelectorAll("a[href^='/ui/']")]
        .map((x) => x.getAttribute("href")!)
        .filter((h) => parent(h) === own);
      remember([...new Map(all.map((h) => [path(h), h])).values()]);
    },
    true,
  );
}
