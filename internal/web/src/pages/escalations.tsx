// Escalations: what only a person can decide.
import { escalationList, type Escalation } from "../client.gen";
import { Deck } from "../cards/deck";
import { EscalationCard } from "../cards/escalation";
import { useList } from "../list";
import { query, setQuery } from "../route";
import { Head, Tabs } from "../ui/parts";

export default function Escalations() {
  const show = query().get("show") ?? "open";
  const list = useList<Escalation>(
    show,
    (cursor, signal) =>
      escalationList({ cursor, per_page: 50, filter: show === "all" ? [] : ["state:" + show] }, { signal }),
    { topic: "escalations", fits: (e) => show === "all" || !e.resolved_at === (show === "open"), drop: true },
  );
  const again = () => void list.load();
  return (
    <>
      <Head title="Escalations" count={list.count}>
        <Tabs
          label="Show"
          all={["open", "resolved", "all"]}
          at={show}
          to={(s) => setQuery({ show: s === "open" ? "" : s })}
        />
      </Head>
      <Deck
        key={show}
        list={list}
        empty={show === "open" ? "Nothing waits for a decision." : "There is none."}
        card={(e) => <EscalationCard key={e.id} of={e} done={again} />}
      />
    </>
  );
}
