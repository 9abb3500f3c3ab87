// Repositories: which there are, whether agents may work on them, and how to add one.
import { useState } from "preact/hooks";
import { codeHostList, projectCreate, projectList, type Repository } from "../client.gen";
import { useList, useOne } from "../list";
import { go, query, setQuery } from "../route";
import { may } from "../session";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { of, Switch, Text } from "../ui/inputs";
import { Code, Head, NoFit, Search, Tabs } from "../ui/parts";
import { Status } from "../ui/status";
import { Table } from "../ui/table";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";

export default function Repositories() {
  const show = query().get("show") ?? "all",
    q = query().get("q") ?? "",
    [adding, setAdding] = useState(query().has("add"));
  const fits = (r: Repository) =>
    (show === "all" || (show === "enabled") === r.enabled) &&
    (!q || r.full_name.toLowerCase().includes(q.toLowerCase()));
  const list = useList<Repository>(
    show + "\n" + q,
    (cursor, signal) =>
      projectList(
        {
          cursor,
          per_page: 100,
          q: q || undefined,
          filter: show === "all" ? undefined : ["enabled:" + (show === "enabled")],
        },
        { signal },
      ),
    { topic: "repos", fits },
  );
  return (
    <section class="room">
      <Head title="Repositories" count={list.count}>
        <Tabs
          label="Show"
          all={["all", "enabled", "disabled"]}
          at={show}
          to={(s) => setQuery({ show: s === "all" ? "" : s })}
        />
        <Search label="Filter repositories" value={q} to={(t) => setQuery({ q: t })} now />
        <span class="grow" />
        <button type="button" class="main" {...gate(projectCreate, () => setAdding(true))}>
          Add
        </button>
      </Head>
      <Table
        list={list}
        id="repos"
        label="Repositories"
        widths="120px minmax(0,1fr) 130px 120px 110px 90px"
        href={(r) => "/ui/repos/" + r.full_name}
        empty={
          q || show !== "all" ? (
            <NoFit noun="repository" of={[show !== "all" && show, q && `“${q}”`]} clear="/ui/repos" />
          ) : (
            <>
              No repository yet.{" "}
              <button type="button" onClick={() => setAdding(true)}>
                Add one
              </button>
              , or <code>yardmaster repo add PATH</code>
            </>
          )
        }
        columns={[
          {
            name: "Agents",
            cell: (r) => (
              <Status of={r.enabled ? "enabled" : "disabled"} noun="repo" say={r.enabled ? "enabled" : "off"} />
            ),
          },
          { name: "Name", wide: true, cell: (r) => r.full_name },
          {
            name: "Policy file",
            class: "less",
            cell: (r) =>
              r.policy_valid === null ? (
                <span class="dim">none</span>
              ) : (
                <Status of={r.policy_valid ? "valid" : "invalid"} />
              ),
          },
          { name: "Host", class: "dim less", cell: (r) => r.host },
          { name: "Seen by", class: "dim less", cell: (r) => (r.private ? "the account" : "everybody") },
          { name: "Pushed", class: "dim end", cell: (r) => <Time at={r.last_activity_at} suffix={false} /> },
        ]}
      />
      {adding && (
        <Add
          close={() => {
            setAdding(false);
            setQuery({ add: "" });
          }}
        />
      )}
    </section>
  );
}

// Add makes a repository, or says how one that exists gets here.
function Add(p: { close: () => void }) {
  const hosts = useOne("hosts", (signal) =>
    may(codeHostList) ? codeHostList({}, { signal }) : Promise.resolve({ data: [], next_cursor: null }),
  );
  const known = hosts.value.value?.data ?? [];
  return (
    <Dialog title="Add a repository" class="wide" close={p.close}>
      <h3>Make a new one</h3>
      <p class="dim">It gets its first files, and an agent is sent to set it up.</p>
      <Form
        call={projectCreate}
        submit="Make it"
        keep
        read={(f) => ({
          name: of(f, "name") ?? "",
          owner: of(f, "owner"),
          description: of(f, "description"),
          stack: of(f, "stack"),
          private: !!f.get("private"),
        })}
        done={(o) => {
          tell(o.scaffold_note ? "Made. " + o.scaffold_note : "Made. An agent will set it up.");
          p.close();
          go("/ui/repos/" + o.repo.full_name);
        }}
      >
        {(wrong) => (
          <>
            <Text name="name" label="Name" wrong={wrong} need focus />
            <Text name="description" label="What it is for" hint="one line" wrong={wrong} />
            <Text
              name="stack"
              label="What it is made of"
              hint="in words, for the agent"
              wrong={wrong}
              rows={2}
              place="Go, PostgreSQL, a page in plain HTML"
            />
            <details>
              <summary>More</summary>
              <Text name="owner" label="Owner" hint="empty: the only choice there is" wrong={wrong} />
              <Switch name="private" on>
                Not open to everybody (at the built-in host all are so)
              </Switch>
            </details>
          </>
        )}
      </Form>
      <h3>One that exists</h3>
      <p>
        Push it to the server: <Code text="yardmaster repo add PATH --name OWNER/NAME" />
      </p>
      <p>
        At GitHub, an owner of the organisation installs this server's App there; its repositories then appear here by
        themselves.
        {known.map((h) => (
          <>
            {" "}
            <a
              key={h.name}
              href={`${h.address}/apps/${encodeURIComponent(h.app)}/installations/new`}
              target="_blank"
              rel="noreferrer noopener"
            >
              Install {h.app} at {h.name}
            </a>
          </>
        ))}
        {known.length === 0 && (
          <>
            {" "}
            An operator of the server connects it with <code>yardmaster github setup</code> and knows the App's address.
          </>
        )}
      </p>
    </Dialog>
  );
}
