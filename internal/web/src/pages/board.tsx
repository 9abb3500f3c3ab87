// One board: its widgets, read in one go, and what can be done with it.
import { useState } from "preact/hooks";
import type { Call } from "../api";
import { dashboardCreate, dashboardDelete, dashboardGet, dashboardUpdate, type Dashboard } from "../client.gen";
import { BoardEdit, copied, spot } from "../cards/boardedit";
import { placed } from "../cards/sources";
import { Widget } from "../cards/widget";
import { useOne } from "../list";
import { go, query, setQuery, type PageProps } from "../route";
import { Dialog } from "../ui/dialog";
import { useEvery } from "../ui/every";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { Choice, of, Text } from "../ui/inputs";
import { Act, Coming, Empty, Head } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";
import { inert } from "../ui/ansi";
import { seenBy, seers } from "./boards";

type To = { board: Dashboard; name: string; personal: boolean };

const like = { id: dashboardCreate.id, scope: dashboardCreate.scope, method: "POST", path: dashboardCreate.path };

const copy: Call<To, Dashboard> = Object.assign(
  (p: To, init?: { key?: string }) => copied(p.board, p, init?.key),
  like,
);

// share shows a board of one's own to everybody: it is made anew for them, and taken away here.
const share: Call<Dashboard, Dashboard> = Object.assign(async (b: Dashboard, init?: { key?: string }) => {
  const all = await copied(b, { name: b.name, personal: false }, init?.key);
  await dashboardDelete({ id: b.id });
  return all;
}, like);

export default function BoardPage(p: PageProps) {
  const id = p.params.id!,
    edits = query().get("edit") === "1",
    [copying, setCopying] = useState(false);
  const one = useOne<Dashboard>(id, (signal) => dashboardGet({ id }, { signal })),
    b = one.value.value;
  useEvery(30, () => void (edits || one.load()), [one, edits]);
  if (!b)
    return (
      <>
        <Head title="Board" />
        <Coming of={one} />
      </>
    );
  const editing = edits && !b.builtin;
  return (
    <>
      <Head title={inert(b.name)}>
        <span class="dim">
          seen by {seenBy(b)}
          {b.widgets[0] && (
            <>
              {" "}
              · as of <Time at={b.widgets[0].data.as_of} />
            </>
          )}
        </span>
        <span class="grow" />
        {!editing && (
          <>
            <button type="button" {...gate(dashboardCreate, () => setCopying(true))}>
              Copy
            </button>
            {b.personal && (
              <Act
                call={share}
                input={b}
                confirm={`Show “${b.name}” to everybody of the organisation, who may then change it too?`}
                done={(all) => {
                  go("/ui/boards/" + all.id, { replace: true });
                  return "Everybody here sees it.";
                }}
              >
                Share with everybody
              </Act>
            )}
            {!b.builtin && (
              <Act
                call={dashboardDelete}
                input={{ id }}
                class="danger"
                confirm={`Delete the board “${b.name}”? What its widgets show stays where it is.`}
                done={() => {
                  go("/ui/boards", { replace: true });
                  return "Deleted.";
                }}
              >
                Delete
              </Act>
            )}
            {!b.builtin && (
              <button type="button" class="main" {...gate(dashboardUpdate, () => setQuery({ edit: "1" }))}>
                Edit
              </button>
            )}
          </>
        )}
      </Head>
      {editing ? (
        <BoardEdit
          of={b}
          done={(now) => {
            if (now && now.id !== id) return go("/ui/boards/" + now.id, { replace: true });
            if (now) one.value.value = now;
            setQuery({ edit: "" });
          }}
        />
      ) : b.widgets.length === 0 ? (
        <Empty>
          The board is empty.{" "}
          <button type="button" {...gate(dashboardUpdate, () => setQuery({ edit: "1" }))}>
            Add a widget
          </button>
        </Empty>
      ) : (
        <div class="tiles">
          {placed(b).map((at) => {
            const w = b.widgets.find((x) => x.id === at.widget)!;
            return (
              <section key={w.id} class={"tile card fig " + w.kind} style={spot(at)}>
                <Widget board={b} of={w} />
              </section>
            );
          })}
        </div>
      )}
      {!editing && <Raw call={dashboardGet} input={{ id }} of={b} />}
      {copying && (
        <Dialog title="Copy the board" close={() => setCopying(false)}>
          <Form
            call={copy}
            submit="Make the copy"
            done={(made) => {
              tell("Copied.");
              go(`/ui/boards/${made.id}?edit=1`);
              setCopying(false);
            }}
            read={(f) => ({ board: b, name: of(f, "name") ?? "", personal: of(f, "seen") === "personal" })}
          >
            {(wrong) => (
              <>
                <Text name="name" label="Name" wrong={wrong} value={b.name + " (copy)"} focus />
                <Choice name="seen" label="Seen by" wrong={wrong} field="personal" value="personal" all={seers} />
              </>
            )}
          </Form>
        </Dialog>
      )}
    </>
  );
}
