// What no stream tells is asked for again while somebody looks.
import { useEffect } from "preact/hooks";

// useEvery calls again every so many seconds while the tab is seen, and when it is seen
// again.
export function useEvery(seconds: number, again: () => void, deps: unknown[] = []) {
  useEffect(() => {
    const look = () => {
      if (!document.hidden) again();
    };
    const timer = setInterval(look, seconds * 1000);
    document.addEventListener("visibilitychange", look);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
    };
  }, deps);
}

// bytes is an amount of memory for people.
export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined) return "–";
  for (const unit of ["B", "kB", "MB", "GB", "TB"]) {
    if (n < 1000 || unit === "TB") return (n < 10 && unit !== "B" ? n.toFixed(1) : Math.round(n)) + " " + unit;
    n /= 1000;
  }
  return "";
}

// Reread is a list that useFresh asks for again.
type Reread = { load: () => Promise<void>; hold: boolean; ids: { peek: () => string[] } };

// useFresh keeps lists fresh that no topic tells of: every half minute while somebody looks,
// unless they have scrolled down or asked for more rows than come at once.
export function useFresh(...lists: Reread[]) {
  useEvery(
    30,
    () => {
      for (const l of lists) if (!l.hold && l.ids.peek().length <= 50) void l.load();
    },
    lists,
  );
}
