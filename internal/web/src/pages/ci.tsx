// CI runs: the checks that boxes run on heads of pull requests, with what they printed.
import { useEffect, useMemo, useState } from "preact/hooks";
import { said, stored } from "../api";
import { ciLogUrl, ciRuns, type Check } from "../client.gen";
import { useList, useOne } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { bytes } from "../ui/every";
import { Lines } from "../ui/lines";
import { Log } from "../ui/log";
import { useKeys } from "../ui/keys";
import { Empty, Fact, Facts, Head, Id, Search, Tabs } from "../ui/parts";
import { Status } from "../ui/status";
import { Table } from "../ui/table";
import { Time, Took } from "../ui/time";

const states = ["all", "running", "queued", "failed", "lost", "passed"];

export default function Checks() {
  const show = query().get("show") ?? "all",
    repo = query().get("repo") ?? "",
    at = query().get("check") ?? "",
    filter = [...(show === "all" ? [] : ["status:" + show]), ...(repo ? ["repo:" + repo] : [])];
  const list = useList<Check>(
    filter.join(),
    (cursor, signal) => ciRuns({ cursor, per_page: 100, filter }, { signal }),
    { topic: "ci", fits: (c) => (show === "all" || c.status === show) && (!repo || c.repo === repo) },
  );
  return (
    <section class="room">
      <Head title="CI runs" count={list.count}>
        <Tabs label="Show" all={states} at={show} to={(s) => setQuery({ show: s === "all" ? "" : s, check: "" })} />
        <Search label="Repository (owner/name)" value={repo} to={(t) => setQuery({ repo: t })} />
      </Head>
      {at && <One key={at} id={at} close={() => setQuery({ check: "" })} />}
      <Table
        list={list}
        id="checks"
        label="CI runs"
        widths="130px minmax(0,1fr) minmax(0,180px) 90px 80px 90px"
        href={(c) => {
          const url = new URL(location.href);
          url.searchParams.set("check", c.id);
          return url.pathname + url.search;
        }}
        empty={
          filter.length ? (
            <>
              No check fits. <a href="/ui/ci">Show all</a>.
            </>
          ) : (
            "No check has run yet. One runs on each head of a pull request where the policy file names a command."
          )
        }
        columns={[
          { name: "Result", cell: (c) => <Status of={c.status} noun="check" /> },
          { name: "Command", wide: true, cell: (c) => <code>{inert(c.command)}</code> },
          { name: "Repository", class: "dim less", cell: (c) => c.repo },
          { name: "Head", class: "less", cell: (c) => <code>{c.sha.slice(0, 7)}</code> },
          { name: "Took", class: "num less", cell: (c) => <Took from={c.started_at} to={c.finished_at} /> },
          { name: "Age", class: "dim end", cell: (c) => <Time at={c.created_at} suffix={false} /> },
        ]}
      />
    </section>
  );
}

// One is the check of an id, whether or not it is in the list.
function One(p: { id: string; close: () => void }) {
  const one = useOne<{ found?: Check | undefined }>(
      p.id,
      async (signal) => ({ found: (await ciRuns({ filter: ["id:" + p.id], per_page: 1 }, { signal })).data[0] }),
      { counts: ["ci"] },
    ),
    c = one.value.value?.found;
  useKeys([{ keys: "u, Backspace", does: "close the check", group: "This page", run: p.close }]);
  if (!c)
    return one.value.value || one.error.value ? (
      <p class="empty">
        There is no check <code>{inert(p.id)}</code> here.{" "}
        <button type="button" onClick={p.close}>
          Close
        </button>
      </p>
    ) : null;
  return (
    <section class="onecheck" aria-label="Check">
      <h2>
        <code>{inert(c.command)}</code>{" "}
        <button type="button" onClick={p.close}>
          Close
        </button>
      </h2>
      <Facts>
        <Fact name="Result">
          <Status of={c.status} noun="check" />
          {c.exit_code !== null && <span class="num"> exit {c.exit_code}</span>}
        </Fact>
        <Fact name="Repository">
          <a href={"/ui/repos/" + c.repo}>{c.repo}</a>
        </Fact>
        <Fact name="Head">
          <Id of={c.sha} />
        </Fact>
        {c.pr_id && (
          <Fact name="Pull request">
            <a href={"/ui/prs/" + c.pr_id}>open</a>
          </Fact>
        )}
        {c.task_id && (
          <Fact name="Task">
            <a href={"/ui/tasks/" + c.task_id}>open</a>
          </Fact>
        )}
        {c.box_id && (
          <Fact name="Box">
            <a href={"/ui/boxes/" + c.box_id}>{c.box_id.slice(0, 8)}</a>
          </Fact>
        )}
        <Fact name="Took">
          <Took from={c.started_at} to={c.finished_at} />
        </Fact>
      </Facts>
      {c.finished_at ? (
        <Output id={c.id} expires={c.log_expires_at} />
      ) : (
        <Empty>The output is kept when the check ends.</Empty>
      )}
    </section>
  );
}

function Output(p: { id: string; expires: string | null }) {
  const lines = useMemo(() => new Lines(), [p.id]),
    [state, set] = useState<{ text?: string; url?: string; size?: number; own?: boolean }>({});
  useEffect(() => {
    const off = new AbortController();
    lines.clear();
    ciLogUrl({ id: p.id }, { signal: off.signal })
      .then(async (log) => {
        const text = await stored(log.url, off.signal);
        if (text !== undefined) lines.add("out", text || "It printed nothing.");
        set({ url: log.url, size: log.size, own: text !== undefined });
      })
      .catch((e) => {
        if (!off.signal.aborted) set({ text: said(e) });
      });
    return () => off.abort();
  }, [p.id, p.expires]);
  return (
    <>
      {state.text && <Empty>{state.text} Output is kept for three days.</Empty>}
      {state.url && (
        <p>
          <a href={state.url} target="_blank" rel="noreferrer noopener">
            Open the whole output
          </a>{" "}
          <span class="dim">
            {bytes(state.size)}, kept until <Time at={p.expires} />
          </span>
        </p>
      )}
      {state.own && <Log lines={lines} id="output" label="Output of the check" />}
    </>
  );
}
