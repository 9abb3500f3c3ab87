// Approvals: every question about a pull request that waits for a person, worked
// through with one key each.
import { useEffect, useRef } from "preact/hooks";
import { prPendingApprovals, type Approval } from "../client.gen";
import { ApprovalCard } from "../cards/approval";
import { useList } from "../list";
import { go } from "../route";
import { useKeys } from "../ui/keys";
import { ask, Empty, Head, Loading, Trouble } from "../ui/parts";
import { opened } from "./changes";

export default function Approvals() {
  const list = useList<Approval>("", (cursor, signal) => prPendingApprovals({ cursor, per_page: 50 }, { signal }), { topic: "approvals", fits: (a) => a.state === "pending", drop: true });
  const ids = list.ids.value, box = useRef<HTMLUListElement>(null), last = useRef(0), at = useRef(-1);
  const card = () => box.current?.children[at.current] as HTMLElement | undefined;
  const move = (to: number) => { at.current = Math.min((box.current?.children.length ?? 0) - 1, Math.max(0, to)); card()?.focus(); };
  useEffect(() => { // the next one gets the focus when one is decided
    if (ids.length < last.current && at.current >= 0) { if (ids.length) move(at.current); else document.querySelector("h1")?.focus(); }
    last.current = ids.length;
  }, [ids]);
  const decide = async (pick: string) => {
    const li = card();
    if (!li) return move(0);
    if (!opened(li.dataset.pr ?? "", li.dataset.head ?? "") && !(await ask("You have not opened what it changes. Decide all the same?"))) return;
    li.querySelector<HTMLButtonElement>(pick)?.click();
  };
  useKeys([{ keys: "j, ArrowDown", does: "next question", run: () => move(at.current + 1) }, { keys: "k, ArrowUp", does: "previous question", run: () => move(at.current - 1) },
    { keys: "Enter", does: "open its changes", run: () => { const li = card(); if (li) go(`/ui/prs/${li.dataset.pr}?tab=changes`); } },
    { keys: "a", does: "approve", run: () => void decide(".acts button.main") }, { keys: "s", does: "skip", run: () => void decide(".acts button:not(.main)") }], []);
  return <><Head title="Approvals" count={list.state.value === "ready" ? ids.length : undefined} />
    {list.state.value === "loading" ? <Loading /> : list.state.value === "failed" ? <Trouble error={new Error(list.error.value)} again={() => void list.load()} />
      : ids.length === 0 ? <Empty>Nothing waits for you.</Empty> : <ul class="cards" ref={box} onFocusIn={(e) => { const li = (e.target as Element).closest("li"); if (li) at.current = [...box.current!.children].indexOf(li); }}>{ids.map((id) => <ApprovalCard key={id} of={list.rows.get(id)!.value} />)}</ul>}
    {list.more && <p><button type="button" onClick={() => void list.older()}>Show more</button></p>}
  </>;
}
