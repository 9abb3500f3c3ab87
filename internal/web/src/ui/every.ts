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

// useFresh keeps lists fresh that no topic tells of, every so many seconds while somebody
// looks.
export function useFresh(seconds: number, ...lists: { refresh: () => Promise<void> }[]) {
  useEvery(
    seconds,
    () => {
      for (const l of lists) void l.refresh();
    },
    lists,
  );
}
