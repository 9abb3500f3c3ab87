// What went wrong: failed and stuck tasks, boxes that are gone, webhooks that were given
// up, pull requests whose repair is spent.
import {
  boxList,
  taskList,
  webhookList,
  type Box,
  type OverviewCounts,
  type PullRequest,
  type Task,
  type Webhook,
} from "../client.gen";
import { useList, useOne, type List } from "../list";
import { may } from "../session";
import { whole } from "../whole";
import { useEvery } from "../ui/every";

const none = { data: [], next_cursor: null };
const day = 86_400_000;

const failed = (t: Task) => t.status === "failed" && !!t.finished_at && Date.now() - Date.parse(t.finished_at) < day;
const spent = (r: PullRequest) => r.state === "open" && r.needs_person?.why === "spent";
// gone is a box that was here, takes work, and is here no more.
const gone = (b: Box) => b.state === "enrolled" && b.presence.status === "offline" && !!b.presence.last_beat;

export type Wrong = ReturnType<typeof useWrong>;

// useWrong is given the pull requests that need a person.
export function useWrong(pulls: List<PullRequest>) {
  const ended = useList<Task>(
    "f",
    (cursor, signal) =>
      may(taskList)
        ? taskList({ cursor, filter: ["status:failed", "finished:24h"], per_page: 50 }, { signal })
        : Promise.resolve(none),
    { topic: "tasks", fits: failed, drop: true },
  );
  const stuck = useList<Task>(
    "s",
    (cursor, signal) =>
      may(taskList) ? taskList({ cursor, filter: ["stuck:true"], per_page: 50 }, { signal }) : Promise.resolve(none),
    { topic: "tasks", fits: (t) => t.stuck && t.status !== "failed", drop: true },
  );
  const boxes = useList<Box>(
    "b",
    (cursor, signal) =>
      may(boxList)
        ? boxList({ cursor, filter: ["state:enrolled", "presence:offline"], per_page: 100 }, { signal })
        : Promise.resolve(none),
    { topic: "runners", fits: gone, drop: true },
  );
  const hooks = useOne<{ data: Webhook[] }>("h", (signal) =>
    may(webhookList) ? whole((cursor) => webhookList({ cursor, per_page: 100 }, { signal })) : Promise.resolve(none),
  );
  useEvery(30, () => {
    void boxes.refresh(); // nothing tells that a box fell silent before it is looked at
    void hooks.load();
  }, [boxes, hooks]);
  return { ended, stuck, pulls, boxes, hooks };
}

export const rowsOf = <R extends { id: string }>(l: List<R>): R[] =>
  l.ids.value.flatMap((id) => l.rows.get(id)?.value ?? []);

export const goneOf = (w: Wrong): Box[] => rowsOf(w.boxes).filter(gone);
export const deadOf = (w: Wrong): Webhook[] => (w.hooks.value.value?.data ?? []).filter((h) => !h.healthy);

// pullsOf are the pull requests whose repair is spent, but those of which a card stands above.
export const pullsOf = (w: Wrong, above: ReadonlySet<string>): PullRequest[] =>
  rowsOf(w.pulls).filter((r) => spent(r) && !above.has(r.id));

// stuckOf are the stuck tasks whose pull request is not told of itself.
export const stuckOf = (w: Wrong, above: ReadonlySet<string>): Task[] => {
  const told = new Set([
    ...rowsOf(w.pulls)
      .filter(spent)
      .map((r) => r.id),
    ...above,
  ]);
  return rowsOf(w.stuck).filter((t) => !t.pr_id || !told.has(t.pr_id));
};

// countOf is how many things went wrong. Tasks are counted by the server, where there are
// more than are shown.
export function countOf(
  w: Wrong,
  above: ReadonlySet<string> | undefined,
  n: OverviewCounts | undefined,
): number | string | undefined {
  if (!above) return undefined;
  const others = pullsOf(w, above).length + goneOf(w).length + deadOf(w).length,
    stuck = stuckOf(w, above).length;
  const tasks = [w.ended.state.value, w.stuck.state.value];
  if (tasks.includes("failed")) return "–";
  if (tasks.includes("loading")) return undefined;
  if (!w.ended.more && !w.stuck.more) return w.ended.ids.value.length + stuck + others;
  const doubles = w.stuck.ids.value.length - stuck;
  return n && (n.failed_tasks_24h ?? 0) + (n.stuck_tasks ?? 0) - doubles + others;
}
