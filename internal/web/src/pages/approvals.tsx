// Approvals: every question about a pull request that waits for a person, worked
// through with one key each.
import { prPendingApprovals, type Approval } from "../client.gen";
import { ApprovalCard } from "../cards/approval";
import { Deck } from "../cards/deck";
import { useList } from "../list";
import { go } from "../route";
import { ask, Head } from "../ui/parts";
import { opened } from "./changes";

async function decide(li: HTMLElement, pick: string) {
  if (!opened(li.dataset.pr ?? "", li.dataset.head ?? "") && !(await ask("You have not opened what it changes. Decide all the same?"))) return;
  li.querySelector<HTMLButtonElement>(pick)?.click();
}

export default function Approvals() {
  const list = useList<Approval>("", (cursor, signal) => prPendingApprovals({ cursor, per_page: 50 }, { signal }), { topic: "approvals", fits: (a) => a.state === "pending", drop: true });
  return <><Head title="Approvals" count={list.state.value === "ready" ? list.ids.value.length : undefined} />
    <Deck list={list} empty="Nothing waits for you." card={(a) => <ApprovalCard key={a.id} of={a} />}
      keys={{ a: { does: "approve", run: (li) => void decide(li, ".acts button.main") }, s: { does: "skip", run: (li) => void decide(li, ".acts button:not(.main)") },
        Enter: { does: "open what it changes", run: (li) => go(`/ui/prs/${li.dataset.pr}`) } }} /></>;
}
