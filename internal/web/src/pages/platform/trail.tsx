// Trail: what operators looked at, and what happened in every account.
import { accountPlatformAudit, accountPlatformTrail, type AuditEvent, type TrailEntry } from "../../client.gen";
import { EventDetail, EventTable } from "../../cards/events";
import { whoOf } from "../../cards/who";
import { useList } from "../../list";
import { query, setQuery } from "../../route";
import { me } from "../../session";
import { Head, Id, Tabs } from "../../ui/parts";
import { Table } from "../../ui/table";
import { Time } from "../../ui/time";

export default function Trail() {
  const tab = query().get("tab") ?? "trail";
  return (
    <section class="room">
      <Head title="Trail">
        <Tabs
          label="Parts"
          all={["trail", "events"]}
          at={tab}
          to={(t) => setQuery({ tab: t === "trail" ? "" : t, event: "" })}
        />
      </Head>
      {tab === "events" ? <Events /> : <Looks />}
    </section>
  );
}

function Looks() {
  const list = useList<TrailEntry>("trail", (cursor, signal) =>
    accountPlatformTrail({ cursor, per_page: 100 }, { signal }),
  );
  return (
    <>
      <p class="dim">Every look of an operator at a tenant's data.</p>
      <Table
        list={list}
        id="trail"
        label="Looks of operators"
        widths="150px minmax(0,1fr) 110px 110px 110px 90px"
        empty="Nobody has looked."
        columns={[
          { name: "Who", cell: (e) => <Who actor={e.actor} /> },
          { name: "Capability", cell: (e) => <code>{e.capability}</code> },
          {
            name: "Account",
            class: "less",
            cell: (e) =>
              e.account_id ? <a href={"/ui/platform/accounts/" + e.account_id}>{e.account_id.slice(0, 8)}</a> : "all",
          },
          {
            name: "User",
            class: "less",
            cell: (e) => (e.user_id ? <a href={"/ui/platform/users/" + e.user_id}>{e.user_id.slice(0, 8)}</a> : ""),
          },
          { name: "Run", class: "less", cell: (e) => (e.run_id ? <Id of={e.run_id} /> : "") },
          { name: "When", class: "dim end", cell: (e) => <Time at={e.at} suffix={false} /> },
        ]}
      />
    </>
  );
}

function Events() {
  const at = query().get("event") ?? "",
    list = useList<AuditEvent>("events", (cursor, signal) =>
      accountPlatformAudit({ cursor, per_page: 100 }, { signal }),
    ),
    open = list.rows.get(at)?.value;
  return (
    <>
      <p class="dim">What happened in every account. That you look is recorded.</p>
      {open && <EventDetail of={open} close={() => setQuery({ event: "" })} />}
      <EventTable list={list} foreign empty="Nothing has happened yet." />
    </>
  );
}

// Who is an operator, with the way to who they are.
function Who(p: { actor: string }) {
  const id = p.actor.startsWith("user:") ? p.actor.slice(5) : "",
    own = me.value?.user;
  return id ? (
    <a href={"/ui/platform/users/" + id}>{id === own?.id ? own.login : "user " + id.slice(0, 8)}</a>
  ) : (
    <>{whoOf(p.actor)}</>
  );
}
