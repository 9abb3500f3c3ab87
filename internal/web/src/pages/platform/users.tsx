// Users of the server.
import { accountUsersList, type PlatformUser } from "../../client.gen";
import { useList } from "../../list";
import { query, setQuery } from "../../route";
import { inert } from "../../ui/ansi";
import { Head, Search, Tabs } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Table } from "../../ui/table";
import { Time } from "../../ui/time";

export default function Users() {
  const show = query().get("show") ?? "all",
    q = query().get("q") ?? "";
  const list = useList<PlatformUser>(show + "\n" + q, (cursor, signal) =>
    accountUsersList(
      { cursor, per_page: 100, q: q || undefined, filter: show === "all" ? [] : ["status:" + show] },
      { signal },
    ),
  );
  return (
    <section class="room">
      <Head title="Users" count={list.count}>
        <Tabs
          label="Show"
          all={["all", "approved", "waitlisted"]}
          at={show}
          to={(s) => setQuery({ show: s === "all" ? "" : s })}
        />
        <Search label="Filter users" value={q} to={(t) => setQuery({ q: t })} />
      </Head>
      <Table
        list={list}
        id="users"
        label="Users"
        widths="120px minmax(0,1fr) minmax(0,1fr) 90px 90px"
        href={(u) => "/ui/platform/users/" + u.id}
        empty="Nobody fits."
        columns={[
          {
            name: "Gate",
            cell: (u) => <Status of={u.approved ? "approved" : "waiting"} say={u.approved ? "let in" : "waits"} />,
          },
          {
            name: "Login",
            wide: true,
            cell: (u) => (
              <>
                {inert(u.login)} <small>{inert(u.name)}</small>
              </>
            ),
          },
          { name: "E-mail", class: "dim less", cell: (u) => inert(u.email) },
          { name: "", class: "dim less", cell: (u) => (u.platform_admin ? "operator" : "") },
          { name: "Age", class: "dim end", cell: (u) => <Time at={u.created_at} suffix={false} /> },
        ]}
      />
    </section>
  );
}
