// The filters of the list of tasks, for rows that come by themselves: which of them fit
// what the server was asked for.
import type { Task } from "../client.gen";
import { me } from "../session";

const part = (id: string, p: string) => id.startsWith(p) || id.endsWith(p);

// waits tells whether a task goes on only if a person acts.
const waits = (t: Task) => t.holds.some((h) => h.clear !== null && h.blocking);

// fitsFilter tells whether a task fits a filter such as "status:failed,held". What is not
// known here fits nothing.
export function fitsFilter(t: Task, filter: string): boolean {
  const at = filter.indexOf(":"),
    want = filter.slice(at + 1);
  switch (filter.slice(0, at)) {
    case "status":
      return want.split(",").includes(t.status);
    case "stuck":
      return t.stuck;
    case "waits":
      return waits(t);
    case "kind":
      return want.split(",").includes(t.kind);
    case "person":
      return want === "me" ? t.requested_by !== null && t.requested_by === me.value?.user?.id : t.requested_by === want;
    case "since":
      return Date.parse(t.created_at) >= Date.parse(want);
    case "before":
      return Date.parse(t.created_at) < Date.parse(want);
    case "repo":
      return t.repo === want;
    case "branch":
      return t.branch === want;
    case "box":
      return t.box_id === want;
    case "id":
      return part(t.id, want);
    case "label": {
      const cut = want.indexOf("=");
      return t.labels[want.slice(0, cut)] === want.slice(cut + 1);
    }
  }
  return false;
}

// together joins filters: of two for one key that both name states, what both leave.
export function together(own: string[], more: string[]): string[] {
  const status = (all: string[]) => all.find((f) => f.startsWith("status:"))?.slice(7);
  const a = status(own),
    b = status(more),
    rest = [...new Set([...own, ...more])].filter((f) => !f.startsWith("status:"));
  if (a === undefined && b === undefined) return rest;
  const both =
    a === undefined || b === undefined ? (a ?? b)!.split(",") : a.split(",").filter((s) => b.split(",").includes(s));
  return [...rest, "status:" + both.join(",")];
}
