// Blockers: what agents ask people for, and the forms that answer.
import { blockerList, type Blocker } from "../client.gen";
import { BlockerCard } from "../cards/blocker";
import { Deck } from "../cards/deck";
import { useList } from "../list";
import { query, setQuery } from "../route";
import { Head, Tabs } from "../ui/parts";

export default function Blockers() {
  const show = query().get("show") ?? "open";
  const list = useList<Blocker>(
    show,
    (cursor, signal) => blockerList({ cursor, per_page: 50, open: show === "open" }, { signal }),
    { topic: "blockers", fits: (b) => show !== "open" || b.state === "open", drop: true },
  );
  return (
    <>
      <Head title="Blockers" count={list.count}>
        <Tabs label="Show" all={["open", "all"]} at={show} to={(s) => setQuery({ show: s === "open" ? "" : s })} />
      </Head>
      <Deck
        key={show}
        list={list}
        empty={show === "open" ? "No agent waits for an answer." : "No agent has asked for anything."}
        card={(b) => <BlockerCard key={b.id} of={b} />}
      />
    </>
  );
}
