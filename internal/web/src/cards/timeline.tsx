// Where the time of a task went: its tries, and the checks, reviews, repairs and people
// behind them, on one line of time. Long waits are drawn shorter than they were.
import { runTimeline, type TaskTimeline, type TimelinePhase } from "../client.gen";
import { useAgain, useOne } from "../list";
import { usd } from "../ui/money";
import { waits } from "../ui/say";
import { words } from "../ui/status";
import { span } from "../ui/time";

type Phase = TimelinePhase["phase"];
export const names: Record<Phase, string> = {
  queue: "queue",
  prepare: "preparing",
  agent: "agent",
  checks: "checks",
  review: "review",
  repair: "repair",
  person: "people",
};
const colour = (p: Phase) => "p-" + (p === "prepare" ? "prep" : p === "repair" ? "agent" : p);

type Row = { name: string; href?: string; of: TimelinePhase[] };

// rowsOf are the newest tries of the task, and what came behind them by what it was.
function rowsOf(t: TaskTimeline): Row[] {
  const tries = new Map<string, TimelinePhase[]>(),
    others: [string, TimelinePhase[]][] = [];
  for (const p of t.phases)
    if (p.phase !== "person" && p.task_id === t.task_id) {
      const key = p.run_id ?? "";
      tries.set(key, [...(tries.get(key) ?? []), p]);
    }
  for (const phase of ["checks", "review", "repair", "person"] as const) {
    const of = t.phases.filter((p) => p.phase === phase && (p.task_id !== t.task_id || phase === "person"));
    if (of.length) others.push([names[phase], of]);
  }
  const all = [...tries].map(
    ([run, of]): Row => ({
      name: of[0]!.attempt ? "attempt " + of[0]!.attempt : names.queue,
      of,
      ...(run ? { href: `/ui/tasks/${t.task_id}?run=${run}` } : {}),
    }),
  );
  return [...all.slice(-6), ...others.map(([name, of]) => ({ name, of }))];
}

const begin = (p: TimelinePhase) => Date.parse(p.began_at),
  until = (p: TimelinePhase, now: number) => (p.ended_at ? Date.parse(p.ended_at) : now);

// scale answers where a moment is, from 0 to 1. A time in which no program worked takes at
// most a seventh of what the work took.
export function scale(phases: TimelinePhase[], now: number): (t: number) => number {
  const works = phases.filter((p) => p.phase !== "person" && p.phase !== "queue"),
    marks = [...new Set(phases.flatMap((p) => [begin(p), until(p, now)]))].sort((a, b) => a - b);
  const busy = (a: number, b: number) => works.some((p) => begin(p) < b && until(p, now) > a),
    parts = marks.slice(1).map((b, i) => ({ a: marks[i]!, b, busy: busy(marks[i]!, b) })),
    worked = parts.reduce((n, p) => n + (p.busy ? p.b - p.a : 0), 0);
  const most = worked / 7 || Infinity,
    wide = parts.map((p) => (p.busy ? p.b - p.a : Math.min(p.b - p.a, most))),
    all = wide.reduce((n, w) => n + w, 0) || 1;
  return (t) => {
    let at = 0;
    for (const [i, p] of parts.entries()) {
      if (t <= p.a) break;
      at += wide[i]! * Math.min(1, (t - p.a) / (p.b - p.a));
    }
    return at / all;
  };
}

export const took = (p: TimelinePhase, now: number) => span((until(p, now) - begin(p)) / 1000).trim();

// caused is what a phase is about, in words.
export const caused = (p: TimelinePhase): string =>
  p.phase === "person"
    ? p.cause === "blocker"
      ? "answer a run"
      : "decide about the merge"
    : p.phase === "queue"
      ? p.cause
        ? "after " + words(p.cause)
        : waits("no_box_online")
      : p.outcome
        ? words(p.outcome)
        : "";

export function Timeline(p: { id: string }) {
  const one = useOne<TaskTimeline>(p.id + "time", (signal) => runTimeline({ id: p.id }, { signal })),
    again = () => void one.load();
  useAgain("tasks", p.id, again);
  useAgain("prs", (x) => x.op !== "remove" && x.row.task_id === p.id, again);
  const t = one.value.value;
  if (!t?.phases.some((x) => x.run_id)) return null; // nothing has begun
  const now = Date.parse(t.at),
    at = scale(t.phases, now),
    rows = rowsOf(t);
  return (
    <section class="timeline" aria-label="Timeline">
      <p class="legend">
        <strong>{span(t.lead_seconds).trim()}</strong> from filed to {t.ended_at ? "its end" : "now"}
        {t.parts.map((x) => (
          <span key={x.phase}>
            <svg class="key" aria-hidden="true">
              <rect class={colour(x.phase)} width="10" height="10" rx="2" />
            </svg>
            {names[x.phase]} {span(x.seconds).trim()}
          </span>
        ))}
      </p>
      <ol>
        {rows.map((r) => (
          <li key={r.name}>
            {r.href ? <a href={r.href}>{r.name}</a> : <span>{r.name}</span>}
            <svg width="100%" height="14" role="img" aria-label={said(r, now)}>
              {r.of.map((x) => {
                const from = at(begin(x));
                return (
                  <rect
                    key={x.phase + x.began_at}
                    class={colour(x.phase) + (x.outcome === "failed" || x.outcome === "lost" ? " wrong" : "")}
                    x={`${from * 100}%`}
                    width={`${Math.max(0.25, (at(until(x, now)) - from) * 100)}%`}
                    y="2"
                    height="10"
                    rx="2"
                  >
                    <title>
                      {[
                        `${names[x.phase]}, ${took(x, now)}`,
                        caused(x),
                        x.cost_usd && usd(x.cost_usd),
                        new Date(begin(x)).toLocaleString(),
                      ]
                        .filter(Boolean)
                        .join(" · ")}
                    </title>
                  </rect>
                );
              })}
            </svg>
            <span class="num">{costOf(r)}</span>
          </li>
        ))}
      </ol>
    </section>
  );
}

const said = (r: Row, now: number) => r.of.map((x) => `${names[x.phase]} ${took(x, now)}`).join(", ");

function costOf(r: Row): string {
  const known = r.of.filter((x) => x.cost_usd !== null);
  return known.length ? usd(String(known.reduce((n, x) => n + Number(x.cost_usd), 0))) : "";
}
