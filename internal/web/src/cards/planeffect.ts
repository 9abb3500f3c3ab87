// What an approval of a plan does, in words.
import type { PlanDetail, PlanGroup } from "../client.gen";
import { inert } from "../ui/ansi";

export const merged = (g: PlanGroup) => g.tasks.filter((t) => t.status === "merged" || t.status === "completed").length;
export const over = (p: PlanDetail) => ["done", "failed", "cancelled"].includes(p.status);

const someTitles = 5;

function titles(all: PlanGroup[]) {
  const some = all.slice(0, all.length > someTitles + 1 ? someTitles : all.length).map((g) => inert(g.title)),
    rest = all.length - some.length;
  return some.join("; ") + (rest ? ` and ${rest} more` : "");
}

// effect says which groups that are held the approval starts, and which wait for others.
export function effect(p: PlanDetail, starting: string) {
  const done = new Set(p.groups.filter((g) => g.status === "done").map((g) => g.id)),
    held = p.groups.filter((g) => g.status === "held"),
    first = held.filter((g) => g.upstream.every((u) => done.has(u.group_id))),
    later = held.filter((g) => !first.includes(g));
  return [
    first.length && starting + titles(first) + ".",
    later.length && `Waiting for others to be done: ${titles(later)}.`,
  ]
    .filter(Boolean)
    .join(" ");
}
