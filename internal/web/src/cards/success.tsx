// Which template is worth its money: of the runs of each that ended by themselves, how many
// did what they were to do, with the range that so few or so many leave, and what one cost.
import type { OverviewFlow } from "../client.gen";
import { inert } from "../ui/ansi";
import { many, usd } from "../ui/money";
import { Interval, ofAll } from "../ui/rate";

export function Success(p: { of: OverviewFlow }) {
  const rows = p.of.templates;
  return (
    <section class="card fig g12" aria-label="Success by template">
      <header>
        <h2>Success by template</h2>
        <p>Runs of work that succeeded, of those that ended by themselves in {many(p.of.days.length, "day")}</p>
      </header>
      {rows.length === 0 ? (
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
                  {s.cost_usd === null ? "–" : usd(s.cost_usd)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}
