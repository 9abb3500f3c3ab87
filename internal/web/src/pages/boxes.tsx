// Boxes: the machines that run agents, and how to add one.
import { useEffect, useState } from "preact/hooks";
import { boxAdd, boxList, type Box, type BoxEnrollment } from "../client.gen";
import { Stalled } from "../cards/stalled";
import { OverSSH } from "../cards/overssh";
import { RolloutLine, useRollout } from "../cards/rollout";
import { newest, UpdateButton, useReleases } from "../cards/updating";
import { BoxStatus, Outside, Owner, Slots, stateOf } from "../cards/box";
import { useList } from "../list";
import { listen } from "../live";
import { go, query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { useFresh } from "../ui/every";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { number, of, Once, pairs, Text } from "../ui/inputs";
import { Code, Head, NoFit, Tabs } from "../ui/parts";
import { Table } from "../ui/table";
import { Time } from "../ui/time";
import { table } from "../own";

type Show = { filter?: string[]; fits: (b: Box) => boolean };
const shows: Record<string, Show> = table({
  all: { fits: () => true },
  online: {
    filter: ["state:enrolled", "presence:online"],
    fits: (b) => b.state === "enrolled" && b.presence.status === "online",
  },
  offline: {
    filter: ["state:enrolled,draining,drained", "presence:stale,offline"],
    fits: (b) => b.presence.status !== "online" && b.state !== "revoked",
  },
  revoked: { filter: ["state:revoked"], fits: (b) => b.state === "revoked" },
});

export default function Boxes() {
  const show = query().get("show") ?? "all",
    own = shows[show] ?? shows["all"]!,
    [adding, setAdding] = useState(query().has("add"));
  const list = useList<Box>(
    show,
    (cursor, signal) => boxList({ cursor, per_page: 100, filter: own.filter }, { signal }),
    { topic: "runners", fits: own.fits },
  );
  useFresh(15, list);
  const rollout = useRollout(),
    releases = useReleases().value.value?.data ?? [],
    latest = newest(releases);
  const boxes = list.ids.value.map((id) => list.rows.get(id)!.value).filter((b) => b.state !== "revoked");
  const slots = boxes.reduce((n, b) => n + (stateOf(b) === "online" ? b.slots : 0), 0),
    busy = boxes.reduce((n, b) => n + b.presence.active, 0);
  return (
    <section class="room">
      <Head title="Boxes" count={list.count}>
        <Tabs label="Show" all={Object.keys(shows)} at={show} to={(s) => setQuery({ show: s === "all" ? "" : s })} />
        {slots > 0 && (
          <span class="dim num">
            {busy} of {slots} slots busy
          </span>
        )}
        <span class="grow" />
        <a class="button" href="/ui/fleet">
          Use and updates
        </a>
        {boxes.length > 0 && <UpdateButton releases={releases} started={() => void rollout.load()} />}
        <button type="button" class="main" {...gate(boxAdd, () => setAdding(true))}>
          Add a box
        </button>
      </Head>
      {rollout.value.value?.rollout && !rollout.value.value.rollout.ended_at && <RolloutLine of={rollout} />}
      <Table
        list={list}
        id="boxes"
        label="Boxes"
        widths="130px minmax(0,1fr) minmax(60px,180px) 110px 110px 120px 90px"
        href={(b) => "/ui/boxes/" + b.id}
        empty={
          show !== "all" ? (
            <NoFit noun="box" of={[show]} clear="/ui/boxes" />
          ) : (
            <>
              No box yet. A box is a machine of yours that runs agents:{" "}
              <button type="button" {...gate(boxAdd, () => setAdding(true))}>
                Add a box
              </button>{" "}
              and paste one line there.
              <Stalled reason="no_box_online" for="one" />
              <Code text="yardmaster box enroll" />
            </>
          )
        }
        columns={[
          { name: "Presence", cell: (b) => <BoxStatus of={b} /> },
          {
            name: "Name",
            wide: true,
            cell: (b) => (
              <>
                {inert(b.name || b.id.slice(0, 8))}
                {b.presence.unfit && <small> · {inert(b.presence.unfit)}</small>}
              </>
            ),
          },
          { name: "Slots", class: "less", cell: (b) => <Slots of={b} /> },
          { name: "Isolation", class: "dim less", cell: (b) => b.isolation[0] ?? "not known" },
          { name: "Version", class: "dim less", cell: (b) => <Version of={b} latest={latest} /> },
          { name: "Works for", class: "dim less", cell: (b) => <Owner of={b} /> },
          { name: "Last seen", class: "dim end", cell: (b) => <Time at={b.presence.last_beat} suffix={false} /> },
        ]}
      />
      {show === "all" && <Outside />}
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

// Version is the program of a box beside the newest one.
function Version(p: { of: Box; latest: string | undefined }) {
  const v = p.of.presence.version;
  if (!v || !p.latest || v === p.latest) return <>{inert(v) || "–"}</>;
  return (
    <span title={`The newest is ${p.latest}`}>
      {inert(v)} <small>newest: {inert(p.latest)}</small>
    </span>
  );
}

// everyBox reads the ids of all boxes, whatever the page shows.
async function everyBox(signal: AbortSignal): Promise<Set<string>> {
  const had = new Set<string>();
  for (let cursor: string | undefined; ; ) {
    const page = await boxList({ cursor, per_page: 100 }, { signal });
    for (const b of page.data) had.add(b.id);
    if (!page.next_cursor) return had;
    cursor = page.next_cursor;
  }
}

// Add mints the line to paste, shows it once, and waits for a machine that was not there
// before the line was.
function Add(p: { close: () => void }) {
  const [made, setMade] = useState<BoxEnrollment>(),
    [how, setHow] = useState("by a command"),
    [came, setCame] = useState<Box>(),
    [had, setHad] = useState<Set<string>>();
  useEffect(() => {
    if (had) return;
    const off = new AbortController();
    everyBox(off.signal).then(setHad, () => {}); // asked once more with the line
    return () => off.abort();
  }, [made]);
  useEffect(
    () =>
      made &&
      had &&
      listen("runners", (all) => {
        const one = all.find((x) => x.op === "upsert" && !had.has(x.id));
        if (one) setCame(one.row as Box);
      }),
    [made, had],
  );
  return (
    <Dialog title="Add a box" class="wide" close={p.close}>
      {!made && <Tabs label="How" all={["by a command", "over SSH"]} at={how} to={setHow} />}
      {!made && how === "over SSH" ? (
        <OverSSH />
      ) : !made ? (
        <>
          <p>A box is a machine with Linux and git that runs agents. It calls this server; nothing calls it.</p>
          <Form
            call={boxAdd}
            submit="Make the command"
            keep
            done={setMade}
            read={(f) => ({ name: of(f, "name"), slots: number(f, "slots"), labels: pairs(f, "labels") })}
          >
            {(wrong) => (
              <>
                <Text name="name" label="Name" hint="empty: what the machine calls itself" wrong={wrong} focus />
                <Text name="slots" label="Runs at once" hint="empty: what it offers" wrong={wrong} decimal />
                <details>
                  <summary>More</summary>
                  <Text name="labels" label="Labels" hint="name=value, one a line" wrong={wrong} rows={2} code />
                </details>
              </>
            )}
          </Form>
        </>
      ) : (
        <>
          <p>Run this on the machine, within the hour. It works for one machine.</p>
          <Once name="Command" text={made.join} kept={p.close} />
          {came ? (
            <p role="status">
              <BoxStatus of={came} /> <strong>{inert(came.name)}</strong> is here.{" "}
              <button type="button" class="main" onClick={() => go("/ui/boxes/" + came.id)}>
                Show it
              </button>
            </p>
          ) : (
            <p role="status" class="dim">
              Waiting for the machine. The command ends <Time at={made.expires_iso} />.
            </p>
          )}
        </>
      )}
    </Dialog>
  );
}
