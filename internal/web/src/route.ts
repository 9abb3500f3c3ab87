// Addresses of the dashboard. Every view and filter is in the address.
import { signal } from "@preact/signals";
import type { ComponentType } from "preact";

export type Params = Record<string, string>;
export type PageProps = { params: Params };
export type PageModule = { default: ComponentType<PageProps> };

export const here = signal(new URL(location.href));
export const query = () => here.value.searchParams;

// visit names the entry of the history that is shown, so that what is kept of it is found
// when one goes back to it, and not when one follows a link to the same address.
export const visit = (): string => history.state?.visit ?? "";
const made = () => ({ visit: String(Math.random()) });

// go shows an address of the dashboard: anew, in place of the one that is shown, or as it
// was at a visit.
export function go(to: string, how: { replace?: boolean; as?: string | undefined } = {}) {
  const url = new URL(to, location.href);
  if (how.replace) history.replaceState(visit() ? history.state : made(), "", url);
  else history.pushState(how.as ? { visit: how.as } : made(), "", url);
  here.value = url;
}

// setQuery changes the search part of the address; "" and undefined take a name out.
export function setQuery(values: Record<string, string | undefined>) {
  const url = new URL(here.value);
  for (const [k, v] of Object.entries(values))
    if (v) url.searchParams.set(k, v);
    else url.searchParams.delete(k);
  go(url.pathname + url.search + url.hash, { replace: true });
}

// match fits a path such as /ui/tasks/{id} to an address. What ends with {name...} takes all
// that is left of it.
export function match(path: string, to: string): Params | undefined {
  const want = path.split("/"),
    have = to.replace(/\/+$/, "").split("/");
  const rest = want.at(-1)!.endsWith("...}");
  if (rest ? want.length > have.length : want.length !== have.length) return;
  const out: Params = {};
  for (const [i, part] of want.entries()) {
    const got = rest && i === want.length - 1 ? have.slice(i).join("/") : (have[i] ?? "");
    if (!part.startsWith("{")) {
      if (part !== got) return;
      continue;
    }
    try {
      out[part.replace(/^\{|\.*\}$/g, "")] = decodeURIComponent(got);
    } catch {
      return;
    }
  }
  return out;
}

// start has links to the dashboard change the page without loading it anew.
export function start() {
  if (!visit()) history.replaceState(made(), "");
  addEventListener("popstate", () => {
    here.value = new URL(location.href);
  });
  document.addEventListener("click", (e) => {
    const a = (e.target as Element).closest?.("a");
    if (
      !a ||
      e.defaultPrevented ||
      e.button ||
      e.metaKey ||
      e.ctrlKey ||
      e.shiftKey ||
      a.target ||
      a.hasAttribute("download")
    )
      return;
    if (a.origin !== location.origin || !a.pathname.startsWith("/ui/") || a.getAttribute("href")?.startsWith("#"))
      return;
    e.preventDefault();
    go(a.href);
  });
}
