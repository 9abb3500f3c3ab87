// Accounts of the server.
import { accountOrgsList, type OrgSummary } from "../../client.gen";
import { useList } from "../../list";
import { query, setQuery } from "../../route";
import { inert } from "../../ui/ansi";
import { Head, Search, Tabs } from "../../ui/parts";
import { Table } from "../../ui/table";
import { words } from "../../ui/status";
import { Time } from "../../ui/time";

export default function Accounts() {
  const show = query().get("show") ?? "all",
    q = query().get("q") ?? "";
  const list = useList<OrgSummary>(show + "\n" + q, (cursor, signal) =>
    accountOrgsList(
      { cursor, per_page: 100, q: q || undefined, filter: show === "all" ? [] : ["billing:" + show] },
      { signal },
    ),
  );
  return (
    <section class="room">
      <Head title="Accounts" count={list.count}>
        <Tabs
          label="Show"
          all={["all", "paying", "comped", "paused"]}
          at={show}
          to={(s) => setQuery({ show: s === "all" ? "" : s })}
        />
        <Search label="Filter accounts" value={q} to={(t) => setQuery({ q: t })} />
      </Head>
      <Table
        list={list}
        id="accounts"
        label="Accounts"
        widths="110px minmax(0,1fr) 130px 90px 90px 90px 90px"
        href={(a) => "/ui/platform/accounts/" + a.id}
        empty="No account fits."
        columns={[
          { name: "Kind", class: "dim", cell: (a) => (a.kind === "organization" ? "organisation" : "person") },
          { name: "Login", wide: true, cell: (a) => inert(a.login) },
          { name: "Tier", class: "dim less", cell: (a) => words(a.tier) },
          { name: "Billing", class: "dim less", cell: (a) => a.billing ?? "–" },
          { name: "Seats", class: "num less", cell: (a) => `${a.seats}${a.free_devs ? " + " + a.free_devs : ""}` },
          { name: "Members", class: "num less", cell: (a) => a.members },
          { name: "Age", class: "dim end", cell: (a) => <Time at={a.created_at} suffix={false} /> },
        ]}
      />
    </section>
  );
}
