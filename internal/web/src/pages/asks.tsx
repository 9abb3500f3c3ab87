// Asks: what was asked for in words, and what became of each.
import { askList, type Ask } from "../client.gen";
import { useList } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { Head, NoFit, Search, Tabs } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Table } from "../ui/table";
import { Time } from "../ui/time";
import { filing } from "./newtask";

const shows = ["all", "pending", "triaged", "escalated", "dropped"] as const;

// became says in a few words what became of an ask.
export function became(a: Ask): string {
  const v = a.verdict,
    n = v?.task_ids.length ?? 0;
  if (!v) return a.hold ? "waits: " + a.hold.clears_when : "";
  switch (v.kind) {
    case "minted":
      return n === 1 ? "became a task" : `became ${n} tasks`;
    case "planned":
      return "became a plan";
    case "cross_linked":
      return "is covered by another task";
    case "dropped":
      return "was dropped: " + v.reason;
    default:
      return "went to a person: " + words(a.escalation_reason ?? v.reason);
  }
}

export default function Asks() {
  const show = query().get("show") ?? "all",
    q = query().get("q") ?? "",
    repo = query().get("repo") ?? "";
  const list = useList<Ask>(
    show + "\n" + q + "\n" + repo,
    (cursor, signal) =>
      askList(
        {
          cursor,
          per_page: 100,
          q: q || undefined,
          filter: [...(show === "all" ? [] : ["state:" + show]), ...(repo ? ["repo:" + repo] : [])],
        },
        { signal },
      ),
    {
      topic: "asks",
      fits: (a) =>
        (show === "all" || a.state === show) &&
        (!repo || a.repo === repo) &&
        (!q || a.title.toLowerCase().includes(q.toLowerCase())),
    },
  );
  return (
    <section class="room">
      <Head title="Asks" count={list.count}>
        <Tabs label="Show" all={shows} at={show} to={(s) => setQuery({ show: s === "all" ? "" : s })} />
        <Search label="Filter asks" value={q} to={(t) => setQuery({ q: t })} now />
        <span class="grow" />
        <button type="button" class="main" {...filing()}>
          New
        </button>
      </Head>
      {repo && (
        <p>
          Only those about {inert(repo)}. <a href="/ui/asks">Clear</a>
        </p>
      )}
      <Table
        list={list}
        id="asks"
        label="Asks"
        widths="130px minmax(0,1fr) minmax(160px,320px) minmax(0,150px) minmax(0,110px) 80px"
        href={(a) => "/ui/asks/" + a.id}
        empty={
          q || repo || show !== "all" ? (
            <NoFit noun="ask" of={[show !== "all" && show, inert(repo), q && `“${q}”`]} clear="/ui/asks" />
          ) : (
            <>
              Nobody has asked for anything. Ask (<kbd>c</kbd>), or <code>yardmaster ask file "…"</code>
            </>
          )
        }
        columns={[
          {
            name: "State",
            cell: (a) => <Status of={a.state === "triaged" ? "became_tasks" : a.state} say={a.state} />,
          },
          {
            name: "Title",
            wide: true,
            cell: (a) => (
              <>
                {inert(a.title)}
                {a.count > 1 && <small> · asked {a.count} times</small>}
              </>
            ),
          },
          { name: "What became of it", class: "dim less", rank: 2, cell: (a) => inert(became(a)) },
          { name: "Repository", class: "dim less", rank: 1, cell: (a) => a.repo ?? "any" },
          { name: "From", class: "dim less", cell: (a) => inert(a.source) },
          { name: "Age", class: "dim end", cell: (a) => <Time at={a.created_at} suffix={false} /> },
        ]}
      />
    </section>
  );
}
