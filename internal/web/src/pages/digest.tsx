// One digest, drawn from what it holds.
import { digestGet, type Digest, type DigestWait } from "../client.gen";
import { useOne } from "../list";
import type { PageProps } from "../route";
import { inert } from "../ui/ansi";
import { count, usd } from "../ui/money";
import { Coming, Empty, Fact, Facts, Head } from "../ui/parts";
import { Raw } from "../ui/raw";
import { words } from "../ui/status";
import { Time } from "../ui/time";
import { table } from "../own";

const rates: Record<string, string> = table({
  tasks_succeeded: "Tasks that succeeded",
  prs_merged: "Pull requests that were merged",
  checks_passed: "Checks that passed",
});
const places: Record<DigestWait["kind"], string> = {
  approval: "/ui/prs/",
  pr: "/ui/prs/",
  blocker: "/ui/blockers/",
  escalation: "/ui/escalations/",
  plan: "/ui/plans/",
  task: "/ui/tasks/",
};
const more = (n: number, shown: number) => n > shown && <p class="dim">and {n - shown} more</p>;

export default function DigestPage(p: PageProps) {
  const id = p.params.id!,
    one = useOne<Digest>(id, (signal) => digestGet({ id }, { signal })),
    d = one.value.value;
  if (!d)
    return (
      <>
        <Head title="Digest" />
        <Coming of={one} />
      </>
    );
  const c = d.content,
    at = (t: string) =>
      new Date(t).toLocaleString("en", {
        timeZone: d.zone,
        weekday: "short",
        day: "numeric",
        month: "short",
        hour: "2-digit",
        minute: "2-digit",
      });
  return (
    <>
      <Head title={`Digest of the ${d.kind === "daily" ? "day" : "week"} ${d.period}`} />
      <p>
        <strong>{inert(d.headline)}</strong>{" "}
        <span class="dim">
          {at(d.from)} to {at(d.to)}, {d.zone}
        </span>
      </p>
      <Facts>
        <Fact name="Cost">
          {usd(c.cost.cost_usd)}
          {c.cost.unpriced_calls > 0 && (
            <small>
              {" "}
              {c.cost.unpriced_calls === 1 ? "1 call has" : count(c.cost.unpriced_calls) + " calls have"} no price
            </small>
          )}
        </Fact>
        <Fact name="Calls of models">
          {count(c.cost.calls)} in {count(c.cost.sessions)} sessions
        </Fact>
        {c.rates.map((r) => (
          <Fact key={r.name} name={rates[r.name] ?? words(r.name)}>
            <span class="num">
              {r.n} of {r.d}
            </span>
          </Fact>
        ))}
      </Facts>
      <h2>
        Waits for somebody <span class="dim num">{c.waiting.total}</span>
      </h2>
      {c.waiting.rows.length === 0 ? (
        <Empty>Nothing did.</Empty>
      ) : (
        <ul class="cards">
          {c.waiting.rows.map((w) => (
            <li key={w.kind + w.id} class="item">
              <div>
                <p>
                  <a href={places[w.kind] + w.id}>
                    <strong>{inert(w.title)}</strong>
                  </a>
                </p>
                <p class="dim">
                  {w.repo && w.repo + " · "}
                  {words(w.kind)} · {inert(words(w.why))} · for {w.who ? inert(w.who) : "the owners and admins"} · since{" "}
                  <Time at={w.since} suffix={false} />
                </p>
              </div>
            </li>
          ))}
        </ul>
      )}
      {more(c.waiting.total, c.waiting.rows.length)}
      <h2>
        Merged <span class="dim num">{c.merged.total}</span>
      </h2>
      {c.merged.rows.length === 0 ? (
        <Empty>Nothing was.</Empty>
      ) : (
        <ul class="cards">
          {c.merged.rows.map((m) => (
            <li key={m.pr_id} class="item">
              <div>
                <p>
                  <a href={"/ui/prs/" + m.pr_id}>
                    <strong>{inert(m.title)}</strong>
                  </a>
                </p>
                <p class="dim">
                  {m.repo}#{m.number} · {at(m.merged_at)}
                  {m.requested_by && ` · for ${inert(m.requested_by)}`}
                  {m.merged_by && ` · by ${inert(m.merged_by)}`}
                </p>
              </div>
            </li>
          ))}
        </ul>
      )}
      {more(c.merged.total, c.merged.rows.length)}
      <h2>
        Failed <span class="dim num">{c.failed.total}</span>
      </h2>
      {c.failed.rows.length === 0 ? (
        <Empty>Nothing did.</Empty>
      ) : (
        <ul class="cards">
          {c.failed.rows.map((f) => (
            <li key={f.task_id} class="item">
              <div>
                <p>
                  <a href={"/ui/tasks/" + f.task_id}>
                    <strong>{inert(f.title)}</strong>
                  </a>
                </p>
                <p class="dim">
                  {f.repo} · {at(f.failed_at)}
                  {f.failure_kind && ` · ${words(f.failure_kind)}`}
                </p>
                {f.why && <p>{inert(f.why)}</p>}
              </div>
            </li>
          ))}
        </ul>
      )}
      {more(c.failed.total, c.failed.rows.length)}
      <p>
        <a href="/ui/digests">All digests</a>
      </p>
      <Raw call={digestGet} input={{ id }} of={d} />
    </>
  );
}
