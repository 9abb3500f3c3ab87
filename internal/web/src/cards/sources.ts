// What widgets of boards show, in words, and where widgets are on their board.
import type { Dashboard, DashboardPlace, DashboardRow, DashboardValue, DashboardWidgetSpec } from "../client.gen";
import { count, many, usd } from "../ui/money";
import { ofAll } from "../ui/rate";
import { words } from "../ui/status";
import { table } from "../own";

export type Kind = DashboardWidgetSpec["kind"];
export type Source = NonNullable<DashboardWidgetSpec["source"]>;
export type Window = NonNullable<DashboardWidgetSpec["window"]>;

type About = {
  name: string;
  kinds: Kind[];
  now?: true; // it is as of now, and has no window
  whole?: true; // it is of the whole account: no repository narrows it
  well?: [good: string, rest: string]; // the parts of a rate
  href: string; // of the rows behind it
};

const counted: Kind[] = ["stat", "series", "table"],
  listed: Kind[] = [...counted, "feed"];

export const sources: Record<Source, About> = {
  pulls_merged: { name: "Pull requests merged", kinds: listed, href: "/ui/prs?show=merged" },
  pulls_ended: { name: "Merged, of those that ended", kinds: counted, well: ["merged", "closed"], href: "/ui/prs" },
  pulls_open: { name: "Pull requests open", kinds: ["stat"], now: true, whole: true, href: "/ui/prs" },
  tasks_filed: { name: "Tasks filed", kinds: counted, href: "/ui/tasks" },
  tasks_ended: {
    name: "Tasks that went well",
    kinds: counted,
    well: ["went well", "failed"],
    href: "/ui/tasks?show=all",
  },
  tasks_failed: { name: "Tasks that failed", kinds: listed, href: "/ui/tasks?show=failed" },
  tasks_running: { name: "Tasks running", kinds: ["stat"], now: true, whole: true, href: "/ui/tasks?show=running" },
  checks_ended: { name: "Checks that passed", kinds: counted, well: ["passed", "failed"], href: "/ui/ci" },
  boxes_online: { name: "Boxes online", kinds: ["stat"], now: true, whole: true, href: "/ui/boxes" },
  sessions: { name: "Sessions", kinds: counted, href: "/ui/sessions" },
  cost: { name: "Cost", kinds: counted, href: "/ui/usage" },
  waiting: { name: "What waits for people", kinds: ["stat", "table", "feed"], now: true, whole: true, href: "/ui/" },
  health: { name: "How often things go well", kinds: ["table"], whole: true, href: "/ui/repos" },
};

export const kinds: Record<Kind, string> = {
  stat: "one number",
  series: "over time",
  table: "by repository",
  feed: "the newest ones",
  markdown: "a text",
};

// kindOf is how a widget shows its source: a table is by repository, or of what the source is made.
export const kindOf = (kind: Kind, of: Source | undefined) =>
  kind === "table" && of && sources[of].whole ? "as a table" : kinds[kind];

export const windows: Record<Window, string> = {
  "1h": "the last hour",
  "24h": "the last 24 hours",
  "7d": "the last 7 days",
  "30d": "the last 30 days",
  "90d": "the last 90 days",
};

// narrows tells whether a widget of a kind can be of one repository.
export const narrows = (kind: Kind, of: Source) => !sources[of].whole && kind !== "feed";

const labels: Record<string, string> = table({
  tasks_ended: "Tasks that went well",
  pulls_ended: "Pull requests merged",
  checks_ended: "Checks that passed",
  approvals: "A decision about a merge",
  pulls: "A pull request that is stuck",
  plans: "A plan to be started",
  blockers: "An answer or a secret",
  escalations: "An escalation",
  tasks: "A task that is held",
});

// labelOf is what a row of a widget is called.
export const labelOf = (r: DashboardRow) =>
  r.kind === "measure" ? (labels[r.label] ?? words(r.label)) : r.label || "no repository";

// hrefOf is where a row of a widget leads.
export function hrefOf(r: DashboardRow): string | undefined {
  if (r.kind === "repo") return r.repo ? "/ui/repos/" + r.repo : undefined;
  const rooms: Record<string, string> = table({
    pr: "prs",
    approval: "prs",
    task: "tasks",
    blocker: "blockers",
    escalation: "escalations",
    plan: "plans",
  });
  return r.id && rooms[r.kind] ? `/ui/${rooms[r.kind]}/${r.id}` : undefined;
}

// amountOf is a number for bars to be drawn by.
export const amountOf = (v: DashboardValue) => Number(v.unpriced === null ? (v.n ?? 0) : (v.usd ?? 0));

// saidOf is a number of a widget in words: a rate is n of d, a cost that is not known no zero.
export function saidOf(v: DashboardValue): string {
  if (v.unpriced !== null) {
    const without = v.unpriced ? many(v.unpriced, "call") + " without a price" : "";
    return v.usd === null ? without || "–" : usd(v.usd) + (without && `, and ${without}`);
  }
  return v.n === null ? "" : v.d === null ? count(v.n) : ofAll(v.n, v.d);
}

const usual: Record<Kind, [w: number, h: number]> = {
  stat: [3, 1],
  series: [6, 3],
  table: [6, 3],
  feed: [6, 3],
  markdown: [6, 2],
};
export const sizeOf = (kind: Kind) => usual[kind];

// widths are how much of a board's width a widget may have, in columns of twelve.
export const widths: Record<number, string> = { 3: "a quarter", 4: "a third", 6: "half", 8: "two thirds", 12: "all" };
export const sizes = Object.keys(widths).map((w) => [w, widths[Number(w)]!] as const);

// next is the width that is so many steps from one.
export const next = (w: number, by: number) => {
  const all = Object.keys(widths).map(Number),
    at = all.findIndex((x) => x >= w);
  return all[Math.max(0, Math.min(all.length - 1, at + by))]!;
};

export type Sized = { key: string; w: number; h: number };

// packed places things one behind the other, from a row on: each at the first place behind the
// one before it where nothing else is.
export function packed(all: Sized[], from = 0): DashboardPlace[] {
  const out: DashboardPlace[] = [];
  for (const s of all) {
    const last = out.at(-1);
    let x = last ? last.x + last.w : 0,
      y = last?.y ?? from;
    const taken = () => out.some((p) => x < p.x + p.w && p.x < x + s.w && y < p.y + p.h && p.y < y + s.h);
    while (x + s.w > 12 || taken())
      if (x + s.w >= 12) [x, y] = [0, y + 1];
      else x++;
    out.push({ widget: s.key, x, y, w: s.w, h: s.h });
  }
  return out;
}

// placed are the places of all widgets of a board, in the order in which they are read:
// those that the layout does not name follow.
export function placed(b: Pick<Dashboard, "layout" | "widgets">): DashboardPlace[] {
  const there = b.layout.filter((p) => b.widgets.some((w) => w.id === p.widget)),
    rest = b.widgets.filter((w) => !there.some((p) => p.widget === w.id));
  const below = packed(
    rest.map((w) => ({ key: w.id, w: sizeOf(w.kind)[0], h: sizeOf(w.kind)[1] })),
    Math.max(0, ...there.map((p) => p.y + p.h)),
  );
  return [...there, ...below].sort((a, b) => a.y - b.y || a.x - b.x);
}
