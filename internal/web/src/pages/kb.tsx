// The knowledge base: of which repositories something is known.
import { projectList, type Repository } from "../client.gen";
import { placeOf } from "../cards/kb";
import { useList } from "../list";
import { query, setQuery } from "../route";
import { Head, NoFit, Search } from "../ui/parts";
import { Status } from "../ui/status";
import { Table } from "../ui/table";
import { Time } from "../ui/time";

export default function Knowledge() {
  const q = query().get("q") ?? "";
  const list = useList<Repository>(
    q,
    (cursor, signal) => projectList({ cursor, per_page: 100, q: q || undefined }, { signal }),
    { topic: "repos", fits: (r) => !q || r.full_name.toLowerCase().includes(q.toLowerCase()) },
  );
  return (
    <section class="room">
      <Head title="Knowledge base" count={list.count}>
        <Search label="Filter repositories" value={q} to={(t) => setQuery({ q: t })} now />
      </Head>
      <Table
        list={list}
        id="kb"
        label="Repositories"
        widths="minmax(0,1fr) 120px 90px"
        href={(r) => placeOf(r.full_name)}
        empty={
          q ? (
            <NoFit noun="repository" of={[`“${q}”`]} clear="/ui/kb" />
          ) : (
            <>
              Each repository has its own knowledge. <a href="/ui/repos?add=1">Add a repository</a>.
            </>
          )
        }
        columns={[
          { name: "Repository", wide: true, cell: (r) => r.full_name },
          {
            name: "Agents",
            class: "less",
            cell: (r) => (
              <Status of={r.enabled ? "enabled" : "disabled"} noun="repo" say={r.enabled ? "enabled" : "off"} />
            ),
          },
          { name: "Pushed", class: "dim end", cell: (r) => <Time at={r.last_activity_at} suffix={false} /> },
        ]}
      />
    </section>
  );
}
