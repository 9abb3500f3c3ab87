// Which template is worth its money: of the runs of each that ended by themselves, how many
// did what they were to do, with the range that so few or so many leave, and what one cost.
import { taskHistory, type TaskTry } from "../client.gen";
import { useOne } from "../list";
import { may } from "../session";
import { whole } from "../whole";
import { inert } from "../ui/ansi";
import { many, usd } from "../ui/money";
import { Coming } from "../ui/parts";
import { Interval, ofAll } from "../ui/rate";

const most = 31; // days that the server looks back

type Share = { template: string; n: number; d: number; cost: number; priced: number };

// shares counts by template what came to an end, the most used first. What was interrupted
// or lost says nothing of a template.
function shares(tries: TaskTry[], repo: string): Share[] {
  const all = new Map<string, Share>();
  for (const t of tries) {
    if (t.kind !== "work" || (repo && t.repo !== repo) || (t.outcome !== "succeeded" && t.outcome !== "failed"))
      continue;
    const s = all.get(t.template) ?? { template: t.template, n: 0, d: 0, cost: 0, priced: 0 };
    s.d++;
    if (t.outcome === "succeeded") s.n++;
    if (t.cost_usd !== null) {
      s.cost += Number(t.cost_usd);
      s.priced++;
    }
    all.set(t.template, s);
  }
  return [...all.values()].sort((a, b) => b.d - a.d || (a.template < b.template ? -1 : 1));
}

export function Success(p: { days: number; repo: string }) {
  const days = Math.min(p.days, most);
  const one = useOne("tries" + days, (signal) =>
    may(taskHistory)
      ? whole((cursor) => taskHistory({ cursor, per_page: 1000, hours: days * 24 }, { signal }))
      : Promise.resolve({ data: [] as TaskTry[] }),
  );
  const rows = one.value.value && shares(one.value.value.data, p.repo);
  return (
    <section class="card fig g12" aria-label="Success by template">
      <header>
        <h2>Success by template</h2>
        <p>Runs of work that succeeded, of those that ended by themselves in {many(days, "day")}</p>
      </header>
      {!rows ? (
        <Coming of={one} />
      ) : rows.length === 0 ? (
        <p class="empty">It is drawn once a run has ended.</p>
      ) : (
        <table class="success narrows">
          <thead>
            <tr>
              <th scope="col">Template</th>
              <th scope="col">Succeeded</th>
              <th scope="col">Range, 19 times in 20</th>
              <th scope="col" class="end">
                A run cost
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((s) => (
              <tr key={s.template}>
                <th scope="row">{inert(s.template)}</th>
                <td class="num" data-name="Succeeded">
                  {ofAll(s.n, s.d)}
                </td>
                <td data-name="Range, 19 times in 20">
                  <Interval n={s.n} d={s.d} />
                </td>
                <td class="num end" data-name="A run cost">
                  {s.priced ? usd(String(s.cost / s.priced)) : "–"}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
