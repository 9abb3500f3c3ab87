// Artifacts: what runs and people have stored besides code.
import { useState } from "preact/hooks";
import { own, said, store } from "../api";
import { artifactList, artifactPut, projectGet, type Artifact, type Repository } from "../client.gen";
import { NamedTask } from "../cards/named";
import { useList, useOne } from "../list";
import { go, query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { bytes, useFresh } from "../ui/every";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { Upload } from "../ui/inputs";
import { Coming, Head, NoFit, Search } from "../ui/parts";
import { Table } from "../ui/table";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";

const most = 200; // rows; a filter finds what is older

export default function Artifacts() {
  const repo = query().get("repo") ?? "",
    [owner = "", name = "", rest] = repo.split("/");
  if (!repo) return <All filter={[]} />;
  return owner && name && rest === undefined ? (
    <Of key={repo} at={{ owner, repo: name }} />
  ) : (
    <>
      <Head title="Artifacts">
        <Filter />
      </Head>
      <p class="empty">
        <NoFit noun="artifact" of={[`repository “${inert(repo)}”`]} clear="/ui/artifacts" />
      </p>
    </>
  );
}

// Of are those of a repository, which the API knows by its id.
function Of(p: { at: { owner: string; repo: string } }) {
  const one = useOne<Repository>("repo", (signal) => projectGet(p.at, { signal })),
    r = one.value.value;
  if (r) return <All key={r.id} filter={["repo_id:" + r.id]} />;
  return (
    <>
      <Head title="Artifacts">
        <Filter />
      </Head>
      <Coming of={one} />
    </>
  );
}

const Filter = () => (
  <Search label="Repository" whole="owner/name" value={query().get("repo") ?? ""} to={(t) => setQuery({ repo: t })} />
);

// from is where an artifact is from.
const from = (a: Artifact) => (a.run_id ? "a run" : a.task_id ? "a task" : a.repo_id ? "a repository" : "the account");

function All(p: { filter: string[] }) {
  const run = query().get("run") ?? "",
    task = query().get("task") ?? "",
    filter = [...p.filter, ...(run ? ["run_id:" + run] : []), ...(task ? ["task_id:" + task] : [])],
    [adding, add] = useState(false);
  const list = useList<Artifact>(filter.join(), (_, signal) => artifactList({ per_page: most, filter }, { signal }));
  useFresh(30, list);
  return (
    <section class="room">
      <Head title="Artifacts" count={list.count}>
        <Filter />
        {task && (
          <span>
            of <NamedTask id={task} />
          </span>
        )}
        {run && (
          <span>
            of <a href={"/ui/runs/" + run}>a run</a>
          </span>
        )}
        {(run || task) && <a href="/ui/artifacts">Show all</a>}
        <span class="grow" />
        <button type="button" class="main" {...gate(artifactPut, () => add(true))}>
          Store a file
        </button>
      </Head>
      <Table
        list={list}
        id="artifacts"
        label="Artifacts"
        widths="minmax(0,1fr) minmax(0,170px) 80px 110px 90px 90px"
        href={(a) => "/ui/artifacts/" + a.id}
        empty={
          filter.length ? (
            <NoFit
              noun="artifact"
              of={[p.filter.length > 0 && "the repository", task && "the task", run && "the run"]}
              clear="/ui/artifacts"
            />
          ) : (
            <>
              Nothing is stored yet. Reports, pictures and builds are stored here, or by{" "}
              <code>yardmaster artifact put</code>
            </>
          )
        }
        columns={[
          { name: "Name", wide: true, cell: (a) => inert(a.name) },
          { name: "Type", class: "dim less", rank: 1, cell: (a) => inert(a.content_type) },
          { name: "Size", class: "num less", rank: 4, cell: (a) => bytes(a.size) },
          { name: "Of", class: "dim less", rank: 2, cell: from },
          { name: "Kept", class: "dim less", rank: 3, cell: (a) => <Time at={a.expires_at} /> },
          { name: "Age", class: "dim end", cell: (a) => <Time at={a.created_at} suffix={false} /> },
        ]}
      />
      {adding && (
        <Store
          repo={p.filter[0]?.replace("repo_id:", "")}
          task={task}
          close={() => add(false)}
          done={(id) => go("/ui/artifacts/" + id)}
        />
      )}
    </section>
  );
}

// Store records an artifact and sends its bytes to the address that the server has named.
function Store(p: { repo?: string | undefined; task: string; close: () => void; done: (id: string) => void }) {
  const [file, pick] = useState<File>(),
    [sending, send] = useState(false);
  return (
    <Dialog title="Store a file" close={p.close}>
      <Form
        call={artifactPut}
        read={() => ({
          name: file?.name ?? "",
          content_type: file?.type || "application/octet-stream",
          size: file?.size ?? 0,
          task_id: p.task || undefined,
          repo_id: p.task ? undefined : p.repo,
        })}
        submit={sending ? "Sending…" : "Store it"}
        keep
        done={async (o) => {
          if (!own(o.upload_url)) {
            tell(
              "This server keeps files at another address, which a page cannot reach. The command line can: artifact put.",
            );
            return;
          }
          send(true);
          try {
            await store(o.upload_url, o.upload_headers, file!);
            tell(o.name + " is stored.");
            p.done(o.id);
          } catch (e) {
            tell("The file was not stored: " + said(e));
          }
          send(false);
        }}
      >
        {(wrong) => (
          <Upload
            label="File"
            hint={p.task ? "for the task" : p.repo ? "for the repository" : "for the account"}
            error={wrong("name") ?? wrong("content_type") ?? wrong("size")}
            onPick={pick}
          />
        )}
      </Form>
    </Dialog>
  );
}
