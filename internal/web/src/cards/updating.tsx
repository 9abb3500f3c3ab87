// The way to an update of boxes: to which program, and what will happen.
import { useState } from "preact/hooks";
import { whole } from "../whole";
import { boxReleases, boxUpdate, type Release, type UpdateStarted } from "../client.gen";
import { useOne } from "../list";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { Choice, number, of, Text } from "../ui/inputs";
import { tell } from "../ui/toast";
import { counted } from "./rollout";

// useReleases are the programs that boxes may run, newest first.
export const useReleases = () =>
  useOne("releases", (signal) => whole((cursor) => boxReleases({ cursor, per_page: 100 }, { signal })));

// newest is the version that boxes come to without another word.
export const newest = (all: Release[], channel = "builtin") =>
  all.find((r) => r.channel === channel && !r.halted)?.version;

export function UpdateButton(p: { releases: Release[]; started: () => void }) {
  const [open, set] = useState(false),
    [wide, setWide] = useState("10 minutes");
  const versions = [...new Set(p.releases.filter((r) => !r.halted).map((r) => r.channel + "\n" + r.version))];
  return (
    <>
      <button type="button" {...gate(boxUpdate, () => set(true))}>
        Update the boxes
      </button>
      {open && (
        <Dialog title="Update the boxes" close={() => set(false)}>
          <p>
            One box takes the new program first and is watched for {wide}; then the others follow in waves. Runs are not
            cut off. It halts itself when a box does not come up, falls silent, or runs fail more often than before.
          </p>
          <Form
            call={boxUpdate}
            submit="Update the boxes"
            keep
            read={(f) => {
              const [channel, version] = (of(f, "version") ?? "").split("\n"),
                minutes = number(f, "soak_s");
              return {
                channel: channel || undefined,
                version: version || undefined,
                soak_s: typeof minutes === "number" ? minutes * 60 : minutes,
              };
            }}
            done={(o: UpdateStarted) => {
              set(false);
              tell(said(o));
              p.started();
            }}
          >
            {(wrong) => (
              <>
                <Choice
                  name="version"
                  label="To"
                  wrong={wrong}
                  value=""
                  all={[
                    ["", "the newest that they follow"],
                    ...versions.map((v) => {
                      const [channel, version] = v.split("\n");
                      return [v, inert(version! + (channel === "builtin" ? "" : ` of ${channel}`))] as const;
                    }),
                  ]}
                />
                <Text
                  name="soak_s"
                  label="Watch the first box for"
                  hint="minutes; empty: 10"
                  wrong={wrong}
                  decimal
                  onInput={(t) => setWide(`${t.trim() || "10"} minutes`)}
                />
              </>
            )}
          </Form>
        </Dialog>
      )}
    </>
  );
}

const said = (o: UpdateStarted) =>
  o.kind === "started"
    ? `The update to ${o.version} has begun.`
    : o.kind === "joined"
      ? `The update to ${o.rollout?.version ?? o.version} is under way already.`
      : o.version
        ? `No box takes part: ${counted(o.boxes) || "there is none"}.`
        : "There is no program to update to.";
