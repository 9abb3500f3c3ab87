// What a month has cost: the way of its sum to the budget, and each day by model, repository,
// person or key.
import { billingUsage, type BillingUsage, type SpendCap } from "../client.gen";
import { useOne } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { Course } from "../ui/course";
import { usd } from "../ui/money";
import { Coming } from "../ui/parts";
import { Stack, type Layer } from "../ui/stack";
import { words } from "../ui/status";

const ways = { model: "Model", repo: "Repository", member: "Person", key: "Key", kind: "Kind" };
type By = keyof typeof ways;

const none: Record<By, string> = {
  model: "no model named",
  repo: "no repository",
  member: "nobody in particular",
  key: "key not known",
  kind: "no kind",
};

const most = 5; // parts that one can tell by their colours

const day = (name: string) =>
  new Date(name).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

// daysOf are the days of a month, and how many of them have begun.
function daysOf(period: string): { names: string[]; begun: number; open: boolean } {
  const [year, month] = period.split("-").map(Number) as [number, number],
    all = new Date(Date.UTC(year, month, 0)).getUTCDate(),
    now = new Date().toISOString(),
    open = now.startsWith(period);
  return {
    names: Array.from({ length: all }, (_, i) => `${period}-${String(i + 1).padStart(2, "0")}`),
    begun: open ? Number(now.slice(8, 10)) : all,
    open,
  };
}

// layersOf are the dearest parts of a month, and all others as one.
function layersOf(u: BillingUsage, by: By, names: string[]): Layer[] {
  const whole = names.map((n) => Number(u.days.find((d) => d.day === n)?.spent_usd ?? 0)),
    dear = u.series.filter((s) => Number(s.spent_usd) > 0),
    shown = dear.slice(0, dear.length > most ? most - 1 : most),
    layers = shown.map((s, i) => ({
      name: s.name ? inert(by === "kind" ? words(s.name) : s.name) : none[by],
      tone: "f" + (i + 1),
      values: names.map((n) => Number(s.days.find((d) => d.day === n)?.spent_usd ?? 0)),
    }));
  const rest = whole.map((sum, i) => Math.max(0, sum - layers.reduce((s, l) => s + l.values[i]!, 0)));
  if (rest.some((v) => v > 0.000001)) layers.push({ name: "all others", tone: "f5", values: rest });
  return layers;
}

export function MonthCost(p: { of: BillingUsage; cap: SpendCap | undefined; priced: boolean }) {
  const u = p.of,
    by = (Object.keys(ways) as By[]).find((w) => w === query().get("by")) ?? "model";
  const one = useOne("days" + u.period + by, (signal) => billingUsage({ month: u.period, days_by: by }, { signal }), {
      counts: ["budgets"],
    }),
    of = one.value.value,
    { names, begun, open } = daysOf(u.period),
    limits = [p.cap?.usd, p.cap?.operator_usd].filter((v): v is number => typeof v === "number"),
    limit = limits.length ? Math.min(...limits) : undefined,
    f = p.priced ? u.forecast : null;
  let sum = 0;
  const sums = names.slice(0, begun).map((n) => (sum += Number(u.days.find((d) => d.day === n)?.spent_usd ?? 0)));
  return (
    <section class="card fig" aria-label="Day by day">
      <header>
        <h2>Day by day</h2>
        <p>
          <b>{p.priced ? usd(u.spent_usd) : "–"}</b>
          {limit !== undefined && (
            <>
              {" "}
              of <b>{usd(limit)}</b>
            </>
          )}
          {f && (
            <>
              , by the end of the month likely <b>{usd(f.usd)}</b>, between {usd(f.low_usd)} and {usd(f.high_usd)}
            </>
          )}
        </p>
        <div class="acts">
          <span class="seg" role="group" aria-label="By">
            {(Object.keys(ways) as By[]).map((w) => (
              <button
                key={w}
                type="button"
                aria-pressed={w === by}
                onClick={() => setQuery({ by: w === "model" ? "" : w })}
              >
                {ways[w]}
              </button>
            ))}
          </span>
        </div>
      </header>
      {p.priced && sum > 0 && (
        <Course
          label={`What ${u.period} has cost so far`}
          sums={sums}
          days={names.length}
          limit={open ? limit : undefined}
          limitName="budget"
          ahead={f ? { end: Number(f.usd), low: Number(f.low_usd), high: Number(f.high_usd) } : undefined}
          says={(v) => usd(v)}
        />
      )}
      {!of ? (
        <div class="body">
          <Coming of={one} />
        </div>
      ) : (
        <Stack
          label={`What each day of ${u.period} cost, by ${ways[by].toLowerCase()}`}
          names={names.map(day)}
          now={open ? begun - 1 : undefined}
          layers={layersOf(of, by, names)}
          says={(v) => usd(v)}
          line={(v) => "$" + Number(v.toPrecision(3))}
          nothing={u.days.length ? "No call has a known price." : "No model was called."}
        />
      )}
    </section>
  );
}
