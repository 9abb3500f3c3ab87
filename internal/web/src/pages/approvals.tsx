// Approvals: every question about a pull request that waits for a person, worked
// through with one key each.
import { prPendingApprovals, type Approval } from "../client.gen";
import { ApprovalCard } from "../cards/approval";
import { keys } from "../cards/decide";
import { Deck } from "../cards/deck";
import { useList } from "../list";
import { Head } from "../ui/parts";

export default function Approvals() {
  const list = useList<Approval>("", (cursor, signal) => prPendingApprovals({ cursor, per_page: 50 }, { signal }), {
    topic: "approvals",
    fits: (a) => a.state === "pending",
    drop: true,
  });
  return (
    <>
      <Head title="Approvals" count={list.count} />
      <Deck list={list} empty="Nothing waits for you." card={(a) => <ApprovalCard key={a.id} of={a} />} keys={keys} />
    </>
  );
}
