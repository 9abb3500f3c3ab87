// What waits for the person, of every noun, as one list: what is due first comes first.
import { computed, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import {
  blockerAnswer,
  blockerList,
  blockerSubmit,
  escalationList,
  escalationResolve,
  planApprove,
  planList,
  prAll,
  prApprovePending,
  prMerge,
  prPendingApprovals,
  taskList,
  taskRedispatch,
  type Approval,
  type Blocker,
  type Escalation,
  type Plan,
  type PullRequest,
  type Task,
} from "../client.gen";
import type { Rows } from "../cards/deck";
import { useList, type Fetch, type List, type Page } from "../list";
import { may } from "../session";

export type Wait =
  | { noun: "approval"; of: Approval }
  | { noun: "blocker"; of: Blocker }
  | { noun: "escalation"; of: Escalation }
  | { noun: "plan"; of: Plan }
  | { noun: "pull"; of: PullRequest; asked: Escalation[] } // what was asked about it, too
  | { noun: "task"; of: Task };

// A question lapses after two weeks. What never lapses is due as if it did, so that what
// is older goes first.
const lapses = 14 * 86_400_000;

const due = (w: Wait): number => {
  switch (w.noun) {
    case "approval":
      return Date.parse(w.of.expires_at);
    case "pull":
      return Date.parse(w.of.needs_person?.since ?? w.of.created_at) + lapses;
    case "task":
      return Date.parse(w.of.holds[0]?.since ?? w.of.created_at) + lapses;
  }
  return Date.parse(w.of.created_at) + lapses;
};

// whole asks for page after page, up to ten: what has waited longest is on the last one.
const whole =
  <R>(may: () => boolean, ask: (cursor: string | undefined, off: AbortSignal) => Promise<Page<R>>): Fetch<R> =>
  async (cursor, off) => {
    const data: R[] = [];
    if (may())
      for (let n = 0; n < 10; n++) {
        const page = await ask(cursor, off);
        data.push(...page.data);
        cursor = page.next_cursor ?? undefined;
        if (!cursor) break;
      }
    return { data, next_cursor: cursor };
  };

const answers = (b: Blocker) =>
  b.state === "open" && may(b.kind === "missing_credential" ? blockerSubmit : blockerAnswer);
// A question that is open has a card of its own, as has what a held task asks.
const pull = (r: PullRequest) =>
  r.state === "open" && !!r.needs_person && r.needs_person.why !== "asked" && r.needs_person.why !== "push_asked";
const held = (t: Task) => t.status === "held" && !t.holds.some((h) => h.clear?.capability.startsWith("blocker."));

const step = 50;

type Source = Omit<Rows<any>, "rows"> & Pick<List<any>, "rows">;

// pulls are the ids of pull requests of which a card is shown; undefined until that is known.
// needing are all that need a person.
export type Waiting = Rows<Wait> & {
  readonly total: number;
  readonly pulls: ReadonlySet<string> | undefined;
  readonly needing: List<PullRequest>;
};

export function useWaiting(): Waiting {
  const approvals = useList<Approval>(
    "a",
    whole(
      () => may(prApprovePending),
      (cursor, signal) => prPendingApprovals({ cursor, per_page: 200 }, { signal }),
    ),
    { topic: "approvals", fits: (a) => a.state === "pending" && may(prApprovePending), drop: true },
  );
  const blockers = useList<Blocker>(
    "b",
    whole(
      () => may(blockerList),
      async (cursor, signal) => {
        const page = await blockerList({ cursor, open: true, per_page: 100 }, { signal });
        return { ...page, data: page.data.filter(answers) };
      },
    ),
    { topic: "blockers", fits: answers, drop: true },
  );
  const escalations = useList<Escalation>(
    "e",
    whole(
      () => may(escalationResolve),
      (cursor, signal) => escalationList({ cursor, filter: ["state:open"], per_page: 200 }, { signal }),
    ),
    { topic: "escalations", fits: (e) => !e.resolved_at && may(escalationResolve), drop: true },
  );
  const plans = useList<Plan>(
    "p",
    whole(
      () => may(planApprove),
      async (cursor, signal) => {
        const page = Number(cursor ?? 1),
          got = await planList({ bucket: "held", page, per_page: 50 }, { signal });
        return { data: got.data, next_cursor: got.data.length < 50 ? null : String(page + 1) };
      },
    ),
    { topic: "plans", fits: (p) => p.bucket === "held" && may(planApprove), drop: true },
  );
  const needing = useList<PullRequest>(
    "r",
    whole(
      () => may(prAll),
      (cursor, signal) => prAll({ cursor, filter: ["waits:person"], per_page: 200 }, { signal }),
    ),
    { topic: "prs", fits: (r) => r.state === "open" && !!r.needs_person, drop: true },
  );
  const tasks = useList<Task>(
    "t",
    whole(
      () => may(taskRedispatch),
      async (cursor, signal) => {
        const page = await taskList({ cursor, filter: ["status:held"], per_page: 200 }, { signal });
        return { ...page, data: page.data.filter(held) };
      },
    ),
    { topic: "tasks", fits: (t) => held(t) && may(taskRedispatch), drop: true },
  );
  return useMemo(() => {
    const pulls: Source = {
      ids: computed(() =>
        needing.ids.value.filter((id) => {
          const r = needing.rows.get(id)?.value;
          return r && pull(r) && may(prMerge);
        }),
      ),
      rows: needing.rows,
      state: needing.state,
      error: needing.error,
      get more() {
        return needing.more && may(prMerge);
      },
      load: () => needing.load(),
      older: () => needing.older(),
    };
    const shown = signal(step),
      lists: Record<Wait["noun"], Source> = {
        approval: approvals,
        blocker: blockers,
        escalation: escalations,
        plan: plans,
        pull: pulls,
        task: tasks,
      };
    const own = computed(() => new Set(pulls.ids.value));
    // What was asked about a pull request stands on its card while it waits itself.
    const asked = (pr: string) =>
      escalations.ids.value.flatMap((id) => {
        const of = escalations.rows.get(id)?.value;
        return of?.pr_id === pr ? [of] : [];
      });
    const all = computed(() => {
      const out: { id: string; noun: Wait["noun"]; due: number }[] = [];
      for (const noun of Object.keys(lists) as Wait["noun"][])
        for (const id of lists[noun].ids.value) {
          const of = lists[noun].rows.get(id)?.peek();
          if (noun === "escalation" && of?.pr_id && own.value.has(of.pr_id)) continue;
          if (of) out.push({ id, noun, due: due({ noun, of } as Wait) });
        }
      return out.sort((a, b) => a.due - b.due || (a.id < b.id ? -1 : 1));
    });
    const nouns = computed(() => new Map(all.value.map((w) => [w.id, w.noun])));
    const every = Object.values(lists);
    return {
      needing,
      ids: computed(() => all.value.slice(0, shown.value).map((w) => w.id)),
      rows: {
        get(id: string) {
          const noun = nouns.value.get(id),
            row = noun && lists[noun].rows.get(id);
          if (noun !== "pull") return row && { value: { noun, of: row.value } as Wait };
          return row && { value: { noun, of: row.value, asked: asked(id) } };
        },
      },
      state: computed(() => {
        const states = every.map((l) => l.state.value);
        return states.includes("failed") ? "failed" : states.includes("loading") ? "loading" : "ready";
      }),
      error: computed(() => every.map((l) => l.error.value).find((e) => e) ?? ""),
      get more() {
        return all.value.length > shown.value || every.some((l) => l.more);
      },
      get total() {
        return every.some((l) => l.more) ? -1 : all.value.length;
      },
      get pulls() {
        if (every.some((l) => l.state.value === "loading")) return undefined;
        const seen = all.value.slice(0, shown.value).filter((w) => w.noun === "pull");
        return new Set(seen.map((w) => w.id));
      },
      async load() {
        await Promise.all(every.map((l) => l.load()));
      },
      async older() {
        shown.value += step;
        await Promise.all(every.map((l) => l.older()));
      },
    };
  }, [approvals, blockers, escalations, plans, needing, tasks]);
}
