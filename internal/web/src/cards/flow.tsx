// How work flows: what was merged and failed a day, how long it took from filed to merged and
// where that went, and what waited for boxes.
import type { FlowDay, OverviewFlow, TimelinePart } from "../client.gen";
import { many } from "../ui/money";
import { Stack } from "../ui/stack";
import { span } from "../ui/time";

const phases: [name: string, tone: string, of: TimelinePart["phase"][]][] = [
  ["queue", "p-queue", ["queue"]],
  ["preparing", "p-prep", ["prepare"]],
  ["agent and repairs", "p-agent", ["agent", "repair"]],
  ["checks", "p-checks", ["checks"]],
  ["review", "p-review", ["review"]],
  ["people", "p-person", ["person"]],
];

const names = (f: OverviewFlow) =>
  f.days.map((d) => new Date(d.day).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" }));

export function Ended(p: { of: OverviewFlow; href?: string }) {
  const f = p.of;
  return (
    <section class="card fig g6" aria-label="Merged and failed a day">
      <header>
        <h2>{p.href ? <a href={p.href}>Merged and failed a day</a> : "Merged and failed a day"}</h2>
        <p>
          <b>{f.merged}</b> merged, <b>{f.failed}</b> failed in {many(f.days.length, "day")}
        </p>
      </header>
      <Stack
        label="Merged and failed a day"
        names={names(f)}
        layers={[
          { name: "merged", tone: "f-good", values: f.days.map((d) => d.merged) },
          { name: "failed", tone: "f-bad", values: f.days.map((d) => d.failed) },
        ]}
        says={String}
        whole
        now={f.days.length - 1}
        nothing="Nothing was merged, and nothing failed."
      />
    </section>
  );
}

const took = (d: FlowDay, of: TimelinePart["phase"][]) =>
  d.parts.filter((x) => of.includes(x.phase)).reduce((n, x) => n + x.seconds, 0);

export function Lead(p: { of: OverviewFlow; href?: string }) {
  const f = p.of,
    all = f.days.reduce((n, d) => n + (d.lead_seconds ?? 0) * d.merged, 0),
    people = f.days.reduce((n, d) => n + took(d, ["person"]) * d.merged, 0),
    layers = phases.map(([name, tone, of]) => ({ name, tone, values: f.days.map((d) => took(d, of)) })),
    rest = f.days.map((d, i) => Math.max(0, (d.lead_seconds ?? 0) - layers.reduce((n, l) => n + l.values[i]!, 0)));
  return (
    <section class="card fig g6" aria-label="From filed to merged">
      <header>
        <h2>{p.href ? <a href={p.href}>From filed to merged</a> : "From filed to merged"}</h2>
        <p>
          {f.half_seconds === null ? (
            "No task was merged."
          ) : (
            <>
              Half within <b>{span(f.half_seconds)}</b>, nine of ten within {span(f.most_seconds ?? 0)}
              {people > 0 && all > 0 && `; ${Math.round((100 * people) / all)} % of it is waiting for a person`}
            </>
          )}
        </p>
      </header>
      <Stack
        label="From filed to merged, the mean of a day"
        names={names(f)}
        layers={[...layers, { name: "other", tone: "hq0", values: rest }].filter((l) => l.values.some((v) => v > 0))}
        says={span}
        time
        now={f.days.length - 1}
        nothing="It is drawn once a pull request of a task is merged."
      />
    </section>
  );
}

export function Queue(p: { of: OverviewFlow }) {
  const f = p.of,
    most = Math.max(0, ...f.queue.map((q) => q.waiting));
  return (
    <section class="card fig g12" aria-label="Queue and boxes">
      <header>
        <h2>Queue and boxes</h2>
        <p>
          At most <b>{most}</b> waited at once in the last 24 hours; the boxes have {many(f.slots, "slot")} now
        </p>
      </header>
      <Stack
        label="On boxes and waiting for one, the most at once in a quarter of an hour"
        names={f.queue.map((q) => new Date(q.at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" }))}
        layers={[
          { name: "on a box", tone: "f1", values: f.queue.map((q) => q.busy) },
          { name: "waiting for one", tone: "f-ask", values: f.queue.map((q) => q.waiting) },
        ]}
        says={String}
        whole
        limit={f.slots ? { value: f.slots, name: many(f.slots, "slot") } : undefined}
        nothing="Nothing waited, and no box was at work."
      />
    </section>
  );
}
