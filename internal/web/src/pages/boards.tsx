// Boards: the built-in ones, those that the organisation shares, and one's own.
import { useState } from "preact/hooks";
import { dashboardCreate, dashboardList, type DashboardHead } from "../client.gen";
import { Actor } from "../cards/who";
import { useList } from "../list";
import { go } from "../route";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { useFresh } from "../ui/every";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { Choice, of, Text } from "../ui/inputs";
import { Head } from "../ui/parts";
import { Table } from "../ui/table";
import { Time } from "../ui/time";

export const seers = [
  ["", "everybody here"],
  ["personal", "you alone"],
] as const;

export const seenBy = (b: DashboardHead) =>
  b.builtin ? "everybody, built in" : b.personal ? "you alone" : "everybody here";

export default function Boards() {
  const [making, make] = useState(false);
  const list = useList<DashboardHead>("boards", (cursor, signal) =>
    dashboardList({ cursor, per_page: 100 }, { signal }),
  );
  useFresh(30, list);
  return (
    <section class="room">
      <Head title="Boards" count={list.count}>
        <span class="grow" />
        <button type="button" class="main" {...gate(dashboardCreate, () => make(true))}>
          New board
        </button>
      </Head>
      <Table
        list={list}
        id="boards"
        label="Boards"
        widths="minmax(0,1fr) 160px minmax(60px,180px) 110px"
        href={(b) => "/ui/boards/" + b.id}
        empty="The built-in boards are made within a minute of the organisation. Make one of your own."
        columns={[
          { name: "Name", wide: true, cell: (b) => inert(b.name) },
          { name: "Seen by", class: "dim less", cell: seenBy },
          { name: "Made by", class: "dim less", cell: (b) => (b.builtin ? "Yardmaster" : <Actor of={b.created_by} />) },
          { name: "Changed", class: "dim end", cell: (b) => <Time at={b.updated_at} suffix={false} /> },
        ]}
      />
      {making && (
        <Dialog title="New board" close={() => make(false)}>
          <Form
            call={dashboardCreate}
            submit="Make the board"
            done={(b) => go(`/ui/boards/${b.id}?edit=1`)}
            read={(f) => ({ name: of(f, "name") ?? "", personal: of(f, "seen") === "personal", widgets: [] })}
          >
            {(wrong) => (
              <>
                <Text name="name" label="Name" wrong={wrong} focus />
                <Choice name="seen" label="Seen by" wrong={wrong} field="personal" all={seers} />
              </>
            )}
          </Form>
        </Dialog>
      )}
    </section>
  );
}
