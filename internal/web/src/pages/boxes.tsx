// Boxes: the machines that run agents, and how to add one.
import { useEffect, useState } from "preact/hooks";
import { boxAdd, boxList, memberList, type Box, type BoxEnrollment } from "../client.gen";
import { BoxStatus, ownerOf, Slots, stateOf } from "../cards/box";
import { useList, useOne } from "../list";
import { listen } from "../live";
import { go, query, setQuery } from "../route";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { useEvery } from "../ui/every";
import { Form } from "../ui/form";
import { number, of, Once, pairs, Text } from "../ui/inputs";
import { Head, Tabs } from "../ui/parts";
import { Table } from "../ui/table";
import { Time } from "../ui/time";

const shows: Record<string, (b: Box) => boolean> = { all: () => true, online: (b) => stateOf(b) === "online", offline: (b) => b.presence.status !== "online" && b.state !== "revoked", revoked: (b) => b.state === "revoked" };

export default function Boxes() {
  const show = query().get("show") ?? "all", fits = shows[show] ?? shows["all"]!, [adding, setAdding] = useState(query().has("add"));
  const list = useList<Box>(show, async (cursor, signal) => {
    const page = await boxList({ cursor, per_page: 100, filter: show === "revoked" ? ["state:revoked"] : undefined }, { signal });
    return { ...page, data: page.data.filter(fits) };
  }, { topic: "runners", fits });
  const members = useOne("members", (signal) => memberList({}, { signal }));
  useEvery(15, () => void list.load(), [list]);
  const boxes = list.ids.value.map((id) => list.rows.get(id)!.value).filter((b) => b.state !== "revoked");
  const slots = boxes.reduce((n, b) => n + (stateOf(b) === "online" ? b.slots : 0), 0), busy = boxes.reduce((n, b) => n + b.presence.active, 0);
  return <section class="fill">
    <Head title="Boxes" count={list.ids.value.length}><Tabs label="Show" all={Object.keys(shows)} at={show} to={(s) => setQuery({ show: s === "all" ? "" : s })} />
      {slots > 0 && <span class="dim num">{busy} of {slots} slots busy</span>}<span class="grow" />
      <button type="button" class="main" disabled={!may(boxAdd)} title={may(boxAdd) ? undefined : "Needs the scope " + boxAdd.scope} onClick={() => setAdding(true)}>Add a box</button></Head>
    <Table list={list} id="boxes" label="Boxes" widths="130px minmax(0,1fr) minmax(60px,180px) 110px 110px 120px 90px" href={(b) => "/ui/boxes/" + b.id}
      empty={show !== "all" ? <>No box is so. <a href="/ui/boxes">Show all</a>.</> : <>No box yet. A box is a machine of yours that runs agents: <button type="button" onClick={() => setAdding(true)}>Add a box</button> and paste one line there.</>}
      columns={[
        { name: "Presence", cell: (b) => <BoxStatus of={b} /> },
        { name: "Name", wide: true, cell: (b) => <>{inert(b.name || b.id.slice(0, 8))}{b.presence.unfit && <small> · {inert(b.presence.unfit)}</small>}</> },
        { name: "Slots", class: "less", cell: (b) => <Slots of={b} /> },
        { name: "Isolation", class: "dim less", cell: (b) => b.isolation[0] ?? "not known" },
        { name: "Version", class: "dim less", cell: (b) => inert(b.presence.version) || "–" },
        { name: "Works for", class: "dim less", cell: (b) => ownerOf(b, members.value.value?.data) },
        { name: "Last seen", class: "dim end", cell: (b) => <Time at={b.presence.last_beat} suffix={false} /> },
      ]} />
    {adding && <Add had={new Set(list.rows.keys())} close={() => { setAdding(false); setQuery({ add: "" }); }} />}
  </section>;
}

// Add mints the line to paste, shows it once, and waits for the machine.
function Add(p: { had: Set<string>; close: () => void }) {
  const [made, setMade] = useState<BoxEnrollment>(), [came, setCame] = useState<Box>(), [had] = useState(p.had);
  useEffect(() => made && listen("runners", (all) => {
    const one = all.find((x) => x.op === "upsert" && !had.has(x.id));
    if (one) setCame(one.row as Box);
  }), [made]);
  return <Dialog title="Add a box" class="wide" close={p.close}>
    {!made ? <><p>A box is a machine with Linux and git that runs agents. It calls this server; nothing calls it.</p>
      <Form call={boxAdd} submit="Make the command" keep done={setMade} read={(f) => ({ name: of(f, "name"), slots: number(f, "slots"), labels: pairs(f, "labels") })}>{(wrong) => <>
        <Text name="name" label="Name" hint="empty: what the machine calls itself" wrong={wrong} focus />
        <Text name="slots" label="Runs at once" hint="empty: what it offers" wrong={wrong} decimal />
        <details><summary>More</summary><Text name="labels" label="Labels" hint="name=value, one a line" wrong={wrong} rows={2} code /></details></>}</Form></>
      : <><p>Run this on the machine, within the hour. It works for one machine.</p><Once name="Command" text={made.join} kept={p.close} />
        {came ? <p role="status"><BoxStatus of={came} /> <strong>{inert(came.name)}</strong> is here. <button type="button" class="main" onClick={() => go("/ui/boxes/" + came.id)}>Show it</button></p>
          : <p role="status" class="dim">Waiting for the machine. The command ends <Time at={made.expires_iso} />.</p>}</>}</Dialog>;
}
