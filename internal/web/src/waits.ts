// What is counted in the frame of every page: how much waits for the person, and whether
// there is unread mail.
import { effect, signal } from "@preact/signals";
import { account } from "./api";
import { notificationCounts, overviewCounts, type OverviewCounts } from "./client.gen";
import { changes, opening, turn } from "./live";
import { may, me } from "./session";

// counts are of the account that this tab acts for; undefined until they are known.
export const counts = signal<OverviewCounts | undefined>(undefined);
export const unread = signal(0);

// soon calls ask when rows of a topic have changed, at most once in so many milliseconds.
function soon(topics: string[], ms: number, ask: () => Promise<void>) {
  let due = 0;
  const again = () => {
    due ||= window.setTimeout(() => {
      due = 0;
      void ask();
    }, ms);
  };
  for (const t of topics) changes(t, again);
  const first = opening();
  effect(() => {
    const opens = first(turn.value); // after a gap it is asked again
    void account.value;
    if (me.value && !opens) void ask();
  });
}

// latest makes answers reach put, unless one fails, a later one has come, or the tab acts for
// another account by now.
function latest<T>(ask: () => Promise<T>, put: (got: T) => void): () => Promise<void> {
  let last = 0,
    shown = 0;
  return async () => {
    const n = ++last,
      of = account.peek(),
      got = await ask().catch(() => undefined);
    if (got === undefined || n < shown || of !== account.peek()) return;
    shown = n;
    put(got);
  };
}

export function start() {
  effect(() => {
    void account.value; // what is counted in one is nothing in another
    counts.value = undefined;
    unread.value = 0;
  });
  const count = latest(
    () => overviewCounts({}),
    (got) => {
      counts.value = got;
    },
  );
  soon(["tasks", "approvals", "blockers", "escalations", "plans", "prs"], 1000, async () => {
    if (may(overviewCounts)) await count();
  });
  soon(
    ["notifications"],
    300,
    latest(
      () => notificationCounts({}), // an operator's key has no inbox
      (got) => {
        unread.value = got.unread;
      },
    ),
  );
}
