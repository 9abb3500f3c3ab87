// A rollout: where it is, what became of each box, how runs went on the new program, and its end.
import { boxRollout, boxRolloutCancel, type Rollout, type RolloutCounts } from "../client.gen";
import { useOne } from "../list";
import { inert } from "../ui/ansi";
import { useEvery } from "../ui/every";
import { Act, Trouble } from "../ui/parts";
import { ofAll } from "../ui/rate";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";
import { Actor } from "./who";

type State = keyof RolloutCounts;

// says are the states of boxes in a rollout, those that take part first.
const says: Record<State, string> = {
  good: "run it",
  told: "take it now",
  waits: "wait for their turn",
  failed: "went back to the program of before",
  lost: "fell silent",
  current: "had it already",
  pinned: "take no updates",
  other_channel: "follow another channel",
  away: "are offline or leaving",
  unbuilt: "have a machine that it is not built for",
  unreachable: "are too old for one step",
  unable: "cannot update themselves",
};
const states = Object.keys(says) as State[];
const tones: Record<State, string> = {
  good: "done",
  told: "running",
  waits: "waiting",
  failed: "failed",
  lost: "lost",
  current: "done",
  pinned: "paused",
  other_channel: "ended",
  away: "ended",
  unbuilt: "ended",
  unreachable: "stale",
  unable: "stale",
};

// counted says how many boxes are in which state.
export const counted = (c: RolloutCounts) =>
  states
    .filter((s) => c[s] > 0)
    .map((s) => `${c[s]} ${c[s] === 1 ? wordOf(s) : says[s]}`)
    .join(", ");

const stage: Record<Rollout["state"], [state: string, says: string]> = {
  preparing: ["waiting", "begins"],
  canary: ["running", "one box tries it first"],
  soaking: ["running", "the first box is watched"],
  rolling: ["running", "under way"],
  done: ["done", "done"],
  halted: ["failed", "halted itself"],
  cancelled: ["cancelled", "cancelled"],
};

// useRollout is the newest rollout; none where there never was one.
export function useRollout() {
  const one = useOne("rollout", (signal) => boxRollout({}, { signal }), { counts: ["runners"] });
  useEvery(15, () => void one.load(), [one]);
  return one;
}

export function RolloutLine(p: { of: ReturnType<typeof useRollout>; whole?: boolean }) {
  const one = p.of,
    r = one.value.value?.rollout,
    e = one.error.value;
  if (e) return <Trouble error={e} again={() => void one.load()} />;
  if (!r) return p.whole && r === null ? <p class="dim">No update was ever begun here.</p> : null;
  const [state, word] = stage[r.state],
    part = states.slice(0, 5).reduce((n, s) => n + r.counts[s], 0);
  return (
    <section class="card rollout" aria-label="The update of boxes">
      <header>
        <h2>
          Update to {inert(r.version)} {r.channel !== "builtin" && <span class="dim">of {inert(r.channel)}</span>}
        </h2>
        <Status of={state} say={word} />
        {r.state === "rolling" && (
          <span class="num">
            wave {r.wave} of {r.waves}
          </span>
        )}
        {r.state === "soaking" && r.soak_until && (
          <span>
            ends <Time at={r.soak_until} />
          </span>
        )}
        <div class="acts">
          {!p.whole && (
            <a class="button" href="/ui/fleet">
              See it
            </a>
          )}
          {!r.ended_at && (
            <Act
              call={boxRolloutCancel}
              input={{}}
              class="danger"
              confirm="End the update? Boxes that run the new program keep it; the others stay as they are."
              done={(now) => {
                one.value.value = { rollout: now };
                return "It is ended.";
              }}
            >
              Cancel the update
            </Act>
          )}
        </div>
      </header>
      <div class="body">
        {r.why && <p class="trouble">{inert(words(r.why))}</p>}
        <svg class="meter" width="100%" height="6" aria-hidden="true">
          <rect class="track" width="100%" height="6" rx="3" />
          <rect class="level ok" width={`${part ? (100 * r.counts.good) / part : 0}%`} height="6" rx="3" />
        </svg>
        <p>
          {ofAll(r.counts.good, part)} of the boxes that take part {r.counts.good === 1 ? "runs" : "run"} it. In all:{" "}
          {counted(r.counts) || "no box"}.
        </p>
        <p class="dim">
          Runs that failed: {ofAll(r.runs.failed, r.runs.runs)} with the new program,{" "}
          {ofAll(r.runs.failed_before, r.runs.runs_before)} in the week before. Begun by <Actor of={r.started_by} />{" "}
          <Time at={r.created_at} />
          {r.ended_at && (
            <>
              , over <Time at={r.ended_at} />
            </>
          )}
        </p>
        {p.whole && <Each of={r} />}
      </div>
    </section>
  );
}

// Each is what became of each box.
function Each(p: { of: Rollout }) {
  const r = p.of;
  if (!r.boxes.length) return null;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Each box">
      <table class="full narrows">
        <thead>
          <tr>
            <th>Box</th>
            <th>Wave</th>
            <th>State</th>
            <th>Had</th>
            <th>Was told</th>
          </tr>
        </thead>
        <tbody>
          {r.boxes.map((b) => (
            <tr key={b.id}>
              <td>{b.name ? <a href={"/ui/boxes/" + b.id}>{inert(b.name)}</a> : "a box that is gone"}</td>
              <td data-name="Wave">{b.wave === 0 ? "none" : b.wave === 1 ? "the first" : b.wave}</td>
              <td>
                <Status of={tones[b.state]} say={wordOf(b.state)} />
                {(b.why || b.says) && <small> · {inert(words(b.why || b.says))}</small>}
              </td>
              <td data-name="Had">{inert(b.from_version) || "–"}</td>
              <td data-name="Was told">{inert(b.step) || "nothing yet"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {r.more_boxes > 0 && <p class="dim">and {r.more_boxes} more</p>}
    </div>
  );
}

// wordOf is the state of one box.
const wordOf = (s: State) =>
  says[s]
    .replace(/^run /, "runs ")
    .replace(/^take /, "takes ")
    .replace(/^wait /, "waits ")
    .replace("their turn", "its turn")
    .replace(/^follow /, "follows ")
    .replace(/^are /, "is ")
    .replace(/^have /, "has ")
    .replace("update themselves", "update itself");
