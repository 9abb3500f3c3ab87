// Stalled says how many tasks wait for what a page would add.
import { taskStalls } from "../client.gen";
import { useOne } from "../list";
import { may } from "../session";
import { many } from "../ui/money";

export function Stalled(p: { reason: string; for: string }) {
  const one = useOne(
      "stalls",
      async (signal) => (may(taskStalls) ? await taskStalls({ per_page: 20 }, { signal }) : { data: [] }),
      { counts: ["tasks"] },
    ),
    n = (one.value.value?.data ?? []).reduce((sum, s) => sum + (s.reason === p.reason ? s.count : 0), 0);
  return n ? (
    <strong>
      {" "}
      {many(n, "task")} {n === 1 ? "waits" : "wait"} for {p.for}.
    </strong>
  ) : null;
}
