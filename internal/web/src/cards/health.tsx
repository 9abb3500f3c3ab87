// How well a repository does: each objective with how many of how many went well, the worst
// one first with what to do about it.
import { projectHealth, type HealthBottleneck, type HealthSLO, type RepoHealth } from "../client.gen";
import { useOne } from "../list";
import { query, setQuery } from "../route";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { useEvery } from "../ui/every";
import { Coming } from "../ui/parts";
import { ofAll } from "../ui/rate";
import { Status, words } from "../ui/status";
import { table } from "../own";

type At = { owner: string; repo: string };

const names: Record<string, string> = table({
  runs_succeed: "Runs succeed",
  tasks_succeed: "Tasks succeed",
  queue_moves: "Nothing waits long for a box",
  checks_pass: "Checks pass",
  answered_in_a_day: "People answer within a day",
  prs_merged: "Pull requests are merged",
  merges_stand: "What was merged stands",
  merged_in_a_day: "Tasks are merged within a day",
  key_pool: "Keys of model providers work",
});

type Grade = RepoHealth["status"] | "unknown";
const grades: Record<Grade, [state: string, says: string]> = {
  ok: ["done", "goal reached"],
  warn: ["stale", "below its goal"],
  bad: ["failed", "far below its goal"],
  no_data: ["none", "no data"],
  unknown: ["unknown", "not shown to you"],
};
const order: Grade[] = ["bad", "warn", "ok", "no_data", "unknown"];

export const Grade = (p: { of: Grade; say?: string }) => (
  <Status of={grades[p.of][0]} noun={p.of === "no_data" ? "checks" : ""} say={p.say ?? grades[p.of][1]} />
);

// way is where one does what a bottleneck asks for.
function way(capability: string, full: string): [href: string, name: string] | undefined {
  const ways: Record<string, [string, string]> = table({
    "task.list": [`/ui/tasks?filter=repo:${full}&show=failed`, "See what failed"],
    "box.utilization": ["/ui/boxes", "See the boxes"],
    "box.list": ["/ui/boxes", "See the boxes"],
    "ci.flakes": [`/ui/repos/${full}/flakes`, "See the tests that come and go"],
    "pr.pending_approvals": ["/ui/approvals", "Answer what waits"],
    "pr.all": [`/ui/prs?repo=${full}`, "See the pull requests"],
    "project.policy_get": [`/ui/repos/${full}?tab=policy`, "See the policy"],
    "project.settings": [`/ui/repos/${full}?tab=settings`, "See the settings"],
    "billing.keys_list": ["/ui/settings/keys", "See the keys"],
    "template.list": ["/ui/templates", "See the templates"],
  });
  return ways[capability];
}

const windows = [7, 30, 90];

export function Health(p: { at: At }) {
  const full = p.at.owner + "/" + p.at.repo,
    days = windows.find((d) => String(d) === query().get("days")) ?? 7;
  const one = useOne<RepoHealth>("health" + days, (signal) =>
      may(projectHealth) ? projectHealth({ ...p.at, days }, { signal }) : Promise.reject(new Error("")),
    ),
    h = one.value.value;
  useEvery(60, () => void one.load(), [one]);
  if (!may(projectHealth)) return null;
  return (
    <section class="card health" aria-label="Health">
      <header>
        <h2>Health</h2>
        {h && <p>{h.slos.length} objectives, the worst first</p>}
        <div class="acts">
          <a href={"/ui/flow?repo=" + full}>Flow of work</a>
          <span class="seg" role="group" aria-label="Days">
            {windows.map((d) => (
              <button
                key={d}
                type="button"
                aria-pressed={d === days}
                onClick={() => setQuery({ days: d === 7 ? "" : String(d) })}
              >
                {d} days
              </button>
            ))}
          </span>
        </div>
      </header>
      {!h ? (
        <div class="body">
          <Coming of={one} />
        </div>
      ) : (
        <>
          {h.bottleneck && <Bottleneck of={h.bottleneck} full={full} />}
          <ul class="rows slo">
            {[...h.slos]
              .sort((a, b) => order.indexOf(a.status) - order.indexOf(b.status))
              .map((s) => (
                <Objective key={s.id} of={s} now={s.id === "queue_moves"} />
              ))}
            <li>
              <div class="spread">
                <Grade of={h.key_pool.status} say={names["key_pool"]} />
                <span class="num">
                  {h.key_pool.status === "unknown"
                    ? "not shown to you"
                    : h.key_pool.d
                      ? ofAll(h.key_pool.n ?? 0, h.key_pool.d)
                      : "there is none"}
                </span>
              </div>
            </li>
          </ul>
        </>
      )}
    </section>
  );
}

function Bottleneck(p: { of: HealthBottleneck; full: string }) {
  const b = p.of,
    to = way(b.capability, p.full);
  return (
    <div class={"note " + (b.status === "bad" ? "bad" : "ask")}>
      <div>
        <p>
          <strong>{names[b.id] ?? words(b.id)}:</strong> {inert(words(b.why))}.
        </p>
        <p>{inert(words(b.do))}</p>
      </div>
      {to && (
        <div class="acts">
          <a class="button" href={to[0]}>
            {to[1]}
          </a>
        </div>
      )}
    </div>
  );
}

function Objective(p: { of: HealthSLO; now: boolean }) {
  const s = p.of,
    goal = `goal ${Math.round(s.ok_from * 100)} %`;
  return (
    <li>
      <div class="spread">
        <Grade of={s.status} say={names[s.id] ?? words(s.id)} />
        <span class="num">
          {s.d ? ofAll(s.n, s.d) : "no data"} <span class="dim">· {goal}</span>
        </span>
      </div>
      {s.d > 0 && (
        <svg class="meter" width="100%" height="6" aria-hidden="true">
          <rect class="track" width="100%" height="6" rx="3" />
          <rect
            class={"level " + { ok: "ok", warn: "warn", bad: "over", no_data: "" }[s.status]}
            width={`${(100 * s.n) / s.d}%`}
            height="6"
            rx="3"
          />
          <rect class="lim" x={`${s.ok_from * 100}%`} width="2" height="6" />
        </svg>
      )}
      <p class="dim">
        {grades[s.status][1]}: {s.means}
        {p.now ? ", as of now" : ""}
      </p>
    </li>
  );
}
