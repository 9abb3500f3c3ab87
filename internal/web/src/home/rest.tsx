// What Home shows below what waits: what runs, what went wrong, why tasks wait, and what
// happened since yesterday.
import {
  overviewDay,
  prAll,
  taskList,
  taskRedispatch,
  taskStalls,
  webhookRevive,
  type PullRequest,
  type Task,
} from "../client.gen";
import { Arm } from "../cards/arm";
import { can } from "../cards/can";
import { Clears, Hold, Until } from "../cards/hold";
import { NamedBox, NamedTask } from "../cards/named";
import { useList, useOne, type List } from "../list";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { useEvery } from "../ui/every";
import { many, usd } from "../ui/money";
import { Act, Coming, Empty, Loading, More, Trouble } from "../ui/parts";
import { waits } from "../ui/say";
import { Status, words } from "../ui/status";
import { Time, Took } from "../ui/time";
import { Weeks } from "./flow";
import { deadOf, goneOf, pullsOf, rowsOf, stuckOf, type Wrong } from "./wrong";

export function Rest(p: { wrong: Wrong; above: ReadonlySet<string> | undefined }) {
  return (
    <>
      <Runs />
      {p.above && <WentWrong of={p.wrong} above={p.above} />}
      <Why />
    </>
  );
}

// Beside is what one looks at beside that: how the last days went.
export function Beside() {
  return (
    <aside class="beside">
      <Weeks />
      <Since />
    </aside>
  );
}

function Runs() {
  const runs = useList<Task>(
    "r",
    (cursor, signal) => taskList({ cursor, filter: ["status:running,claimed"], per_page: 50 }, { signal }),
    { topic: "tasks", fits: (t) => t.status === "running" || t.status === "claimed", drop: true },
  );
  return (
    <>
      <h2>Runs now</h2>
      {runs.state.value === "loading" ? (
        <Loading />
      ) : runs.state.value === "failed" ? (
        <Trouble error={new Error(runs.error.value)} again={() => void runs.load()} />
      ) : runs.ids.value.length ? (
        <ul class="cards" id="runs">
          {rowsOf(runs).map((t) => (
            <TaskCard key={t.id} of={t}>
              {t.box_id && (
                <p class="dim">
                  on <NamedBox id={t.box_id} />
                  {t.activity && <> · {inert(t.activity)}</>}
                </p>
              )}
              {t.holds.some((h) => h.clear?.capability.startsWith("blocker.")) && (
                <p class="hold">
                  It waits for <a href="#waits">an answer above</a>.
                </p>
              )}
              <div class="acts">
                <Status of={t.status} />
                <Took from={t.started_at ?? t.claimed_at} to={null} /> <span class="num">{usd(t.budget.spent)}</span>
              </div>
            </TaskCard>
          ))}
        </ul>
      ) : (
        <Empty>No box is at work.</Empty>
      )}
      <More of={runs} />
    </>
  );
}

function WentWrong(p: { of: Wrong; above: ReadonlySet<string> }) {
  const w = p.of,
    ended = rowsOf(w.ended),
    stuck = stuckOf(w, p.above),
    pulls = pullsOf(w, p.above),
    gone = goneOf(w),
    dead = deadOf(w);
  const lists = [w.ended, w.stuck, w.pulls] as List<any>[],
    failed = lists.find((l) => l.state.value === "failed");
  const none = ended.length + stuck.length + pulls.length + gone.length + dead.length === 0,
    loading = lists.some((l) => l.state.value === "loading");
  if (!failed && (none || loading)) return null; // the figure says so
  return (
    <>
      <h2 id="wrong">Went wrong</h2>
      {failed ? (
        <Trouble error={new Error(failed.error.value)} again={() => void failed.load()} />
      ) : (
        <ul class="cards">
          {gone.map((b) => (
            <li key={b.id} class="item">
              <div>
                <p>
                  Box{" "}
                  <strong>
                    <a href={"/ui/boxes/" + b.id}>{inert(b.name)}</a>
                  </strong>
                </p>
                <p class="dim">
                  It was heard last <Time at={b.presence.last_beat} />. It takes work when it is back.
                </p>
              </div>
              <div class="acts">
                <Status of="offline" />
                <a class="button" href={"/ui/boxes/" + b.id}>
                  See the box
                </a>
              </div>
            </li>
          ))}
          {dead.map((h) => (
            <li key={h.id} class="item">
              <div>
                <p>
                  Webhook{" "}
                  <strong>
                    <a href={"/ui/settings/webhooks"}>{inert(h.name || h.url)}</a>
                  </strong>
                </p>
                <p class="dim">
                  Its receiver has refused every try. Nothing is sent to it any more, since{" "}
                  <Time at={h.unhealthy_at} suffix={false} />.
                </p>
              </div>
              <div class="acts">
                <Status of="exhausted" />
                <Act
                  call={webhookRevive}
                  input={{ id: h.id }}
                  done={() => {
                    void w.hooks.load();
                    return "It is sent to again.";
                  }}
                >
                  Send again
                </Act>
              </div>
            </li>
          ))}
          {pulls.map((r) => (
            <Spent key={r.id} of={r} />
          ))}
          {stuck.map((t) => (
            <TaskCard key={t.id} of={t}>
              {t.holds.map((h) => (
                <Hold key={h.reason} of={h} />
              ))}
              <div class="acts">
                <Status of={t.status} />
                {!t.holds.some((h) => h.clear) && (
                  <Act call={taskRedispatch} input={{ id: t.id }} done="Queued again.">
                    Try again
                  </Act>
                )}
              </div>
            </TaskCard>
          ))}
          {ended.map((t) => (
            <TaskCard key={t.id} of={t}>
              <div class="acts">
                <Status of={t.status} />
                {can(t).redispatch ? (
                  <Act call={taskRedispatch} input={{ id: t.id }} done="Queued again.">
                    Try again
                  </Act>
                ) : (
                  <a class="button" href={`/ui/tasks/${t.id}?tab=graph`}>
                    See what it depends on
                  </a>
                )}
              </div>
            </TaskCard>
          ))}
        </ul>
      )}
      <More of={[w.boxes, w.stuck].find((l) => l.more) ?? w.ended} />
    </>
  );
}

function Spent(p: { of: PullRequest }) {
  const r = p.of,
    b = r.babysit;
  return (
    <li class="item tall">
      <div>
        <p>
          <strong>
            <a href={"/ui/prs/" + r.id}>{inert(r.title)}</a>
          </strong>
        </p>
        <p class="dim">
          {r.repo}#{r.number} · the rounds of its repair are spent: {b.ci_rounds_used} of {b.ci_rounds_max} for checks,{" "}
          {b.conflict_rounds_used} of {b.conflict_rounds_max} for conflicts, {b.review_rounds_used} of{" "}
          {b.review_rounds_max} for reviews, {b.request_rounds_used} of {b.request_rounds_max} for requests
        </p>
      </div>
      <Arm id={r.id} />
    </li>
  );
}

function TaskCard(p: { of: Task; children?: preact.ComponentChildren }) {
  const t = p.of,
    failed = t.status !== "running" || t.stuck; // what an earlier try failed of is over once another runs
  return (
    <li class="item tall">
      <div>
        <p>
          <strong>
            <a href={"/ui/tasks/" + t.id}>{inert(t.title)}</a>
          </strong>
        </p>
        <p class="dim">
          {t.repo} · attempt {t.attempt}
          {failed && t.failure_kind && <> · {words(t.failure_kind)}</>}
          {t.stuck && <b class="bad"> · stuck</b>}
        </p>
        {failed && t.failure && <p>{inert(t.failure)}</p>}
      </div>
      {p.children}
    </li>
  );
}

function Why() {
  const stalls = useOne("stalls", (signal) => taskStalls({ per_page: 20 }, { signal }), {
    counts: ["tasks", "runners", "repos"],
  });
  useEvery(10, () => void stalls.load(), [stalls]); // a key that is added has no topic
  const all = stalls.value.value?.data;
  if (all?.length === 0) return null; // nothing in the queue is held up
  return (
    <>
      <h2>Why it waits</h2>
      {!all ? (
        <Coming of={stalls} />
      ) : (
        <ul class="cards" id="stalls">
          {all.map((s) => (
            <li key={s.reason + JSON.stringify(s.clear)} class="item">
              <div>
                <p>
                  <strong>{waits(s.reason)}</strong>
                  <span class="dim">
                    , {many(s.count, "task")}, since <Time at={s.since} suffix={false} />,
                  </span>{" "}
                  <Until text={s.clears_when} clear={s.clear} />
                </p>
                <p class="dim">
                  {s.task_ids.slice(0, 3).map((id, i) => (
                    <>
                      {i > 0 && ", "}
                      <NamedTask id={id} />
                    </>
                  ))}
                  {s.count > 3 && ` and ${s.count - 3} more`}
                </p>
              </div>
              <div class="acts">
                <Clears of={s.clear} />
              </div>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}

function Since() {
  const one = useOne("day", (signal) => overviewDay({}, { signal }), { counts: ["prs", "tasks"] });
  const merged = useList<PullRequest>(
    "m",
    (cursor, signal) =>
      may(prAll)
        ? prAll({ cursor, filter: ["merged:24h"], per_page: 20 }, { signal })
        : Promise.resolve({ data: [], next_cursor: null }),
    {
      topic: "prs",
      fits: (r) => r.state === "merged" && !!r.merged_at && Date.now() - Date.parse(r.merged_at) < 86_400_000,
    },
  );
  useEvery(60, () => void one.load(), [one]);
  const repos = one.value.value?.repos.filter((r) => r.repo || r.merged_prs || r.filed_tasks || Number(r.cost_usd));
  return (
    <>
      <h2 id="since">Since yesterday</h2>
      {!repos ? (
        <Coming of={one} />
      ) : repos.length === 0 ? (
        <Empty>Nothing happened.</Empty>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Repository</th>
              <th scope="col" class="end">
                Merged
              </th>
              <th scope="col" class="end">
                Filed
              </th>
              <th scope="col" class="end">
                Spent
              </th>
            </tr>
          </thead>
          <tbody>
            {repos.map((r) => (
              <tr key={r.repo}>
                <th scope="row">{r.repo ? <a href={"/ui/repos/" + r.repo}>{inert(r.repo)}</a> : "of no repository"}</th>
                <td class="num">{r.merged_prs}</td>
                <td class="num">{r.filed_tasks ?? "–"}</td>
                <td class="num">{usd(r.cost_usd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {merged.ids.value.length > 0 && (
        <ul class="cards" id="merged">
          {rowsOf(merged).map((r) => (
            <li key={r.id} class="item">
              <div>
                <a href={"/ui/prs/" + r.id}>{inert(r.title)}</a>{" "}
                <span class="dim">
                  {r.repo}#{r.number}
                </span>
              </div>
              <div class="acts">
                <Status of="merged" /> <Time at={r.merged_at} />
              </div>
            </li>
          ))}
        </ul>
      )}
      <More of={merged} />
    </>
  );
}
