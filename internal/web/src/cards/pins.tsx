// What was said of the updates of boxes: which channel they follow, and which take none.
import { useState } from "preact/hooks";
import { boxList, boxPin, boxPins, type Box, type BoxPinInput, type UpdatePin } from "../client.gen";
import { useList, useOne } from "../list";
import { whole } from "../whole";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { Cards, Choice, of, Text } from "../ui/inputs";
import { Act } from "../ui/parts";
import { Time } from "../ui/time";
import { Actor } from "./who";

type Row = UpdatePin & { id: string };

export function Pins(p: { channels: string[] }) {
  const [saying, say] = useState(false),
    [scope, setScope] = useState<BoxPinInput["scope"]>("account");
  const list = useList<Row>("pins", async (cursor, signal) => {
    const page = await boxPins({ cursor, per_page: 100 }, { signal });
    return { ...page, data: page.data.map((x) => ({ ...x, id: x.scope + " " + x.ref })) };
  });
  const boxes = useOne("boxes", (signal) =>
      whole((cursor) => boxList({ cursor, per_page: 100, filter: ["state:enrolled,draining,drained"] }, { signal })),
    ),
    all: Box[] = boxes.value.value?.data ?? [];
  const about = (x: UpdatePin) =>
    x.scope === "account"
      ? "Every box"
      : x.scope === "label"
        ? `Boxes labelled ${inert(x.ref)}`
        : `The box ${inert(all.find((b) => b.id === x.ref)?.name ?? x.ref.slice(0, 8))}`;
  const says = (x: UpdatePin) =>
    [
      x.pinned === true && "takes no updates",
      x.pinned === false && "takes updates",
      x.channel && `follows the channel ${inert(x.channel)}`,
    ]
      .filter(Boolean)
      .join(" and ");
  return (
    <>
      <h2>Who takes which updates</h2>
      <p class="dim">
        A box follows the server's own program unless something is said here. The narrowest word counts: one box before
        a label, a label before every box.
      </p>
      <Cards
        list={list}
        label="What was said of updates"
        empty="Nothing is said: every box takes the server's own program."
        row={(x) => (
          <>
            <div>
              <p>
                <strong>{about(x)}</strong> {says(x)}
              </p>
              <p class="dim">
                {x.why && inert(x.why) + " · "}said by <Actor of={x.set_by} /> <Time at={x.set_at} />
              </p>
            </div>
            <div class="acts">
              <Act
                call={boxPin}
                input={{ scope: x.scope, ref: x.ref || undefined }}
                confirm="Take it back? The next wider word counts then."
                done={() => {
                  void list.load();
                  return "Taken back.";
                }}
              >
                Take back
              </Act>
            </div>
          </>
        )}
      />
      {saying ? (
        <Form
          call={boxPin}
          submit="Say so"
          said="It holds from the next update on."
          done={() => {
            say(false);
            void list.load();
          }}
          read={(f) => ({
            scope,
            ref: of(f, "ref"),
            channel: of(f, "channel"),
            pinned: { no: true, yes: false }[of(f, "pinned") ?? ""],
            why: of(f, "why"),
          })}
        >
          {(wrong) => (
            <>
              <Choice
                name="scope"
                label="Of which boxes"
                wrong={wrong}
                value={scope}
                all={[
                  ["account", "every box"],
                  ["label", "boxes with a label"],
                  ["box", "one box"],
                ]}
                onPick={(v) => setScope(v as typeof scope)}
              />
              {scope === "label" && <Text name="ref" label="Label" hint="name=value" wrong={wrong} code />}
              {scope === "box" && (
                <Choice
                  key={all.length}
                  name="ref"
                  label="Box"
                  wrong={wrong}
                  all={all.map((b) => [b.id, inert(b.name)] as const)}
                />
              )}
              <Choice
                name="pinned"
                label="Updates"
                wrong={wrong}
                value="no"
                all={[
                  ["no", "they take none"],
                  ["yes", "they take them"],
                  ["", "as the next wider word says"],
                ]}
              />
              <Text
                name="channel"
                label="Channel"
                hint="empty: as the next wider word says"
                wrong={wrong}
                among={p.channels}
              />
              <Text name="why" label="Why" hint="for those who wonder" wrong={wrong} />
            </>
          )}
        </Form>
      ) : (
        <p>
          <button type="button" {...gate(boxPin, () => say(true))}>
            Say something about updates
          </button>
        </p>
      )}
    </>
  );
}
