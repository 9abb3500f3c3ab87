// What came of a template and its challenger, beside each other: rates with their range, and
// no winner while too few tasks have ended.
import { templateGet, type Template, type TemplateLanes, type TemplateShare } from "../client.gen";
import { useOne } from "../list";
import { inert } from "../ui/ansi";
import { useEvery } from "../ui/every";
import { count, usd } from "../ui/money";
import { Coming, Empty } from "../ui/parts";
import { Interval, ofAll } from "../ui/rate";
import { span } from "../ui/time";

export function Lanes(p: { of: string }) {
  const one = useOne<Template>("lanes " + p.of, (signal) => templateGet({ name: p.of }, { signal })),
    t = one.value.value;
  useEvery(60, () => void one.load(), [one]);
  if (!t) return <Coming of={one} />;
  if (!t.lanes) return <Empty>No task was split between {inert(t.name)} and a challenger yet.</Empty>;
  return <Beside of={t.lanes} label={"Lanes of " + inert(t.name)} />;
}

function Beside(p: { of: TemplateLanes; label: string }) {
  return (
    <>
      <div class="scroll" tabIndex={0} role="region" aria-label={p.label}>
        <table class="bars narrows">
          <thead>
            <tr>
              <th>Template</th>
              <th class="end">Tasks</th>
              <th class="end">Merged, of those that ended</th>
              <th class="end">Reverted, of those merged</th>
              <th class="end">Cost</th>
              <th class="end">People took at most</th>
            </tr>
          </thead>
          <tbody>
            {p.of.lanes.map((l) => (
              <tr key={l.template}>
                <th scope="row">{inert(l.template)}</th>
                <td class="num end" data-name="Tasks">
                  {count(l.tasks)}
                </td>
                <td class="num end" data-name="Merged">
                  <Share of={l.merged} />
                </td>
                <td class="num end" data-name="Reverted">
                  <Share of={l.reverted} />
                </td>
                <td class="num end" data-name="Cost">
                  {usd(l.cost_usd)}
                </td>
                <td class="num end" data-name="People took">
                  {span(60 * l.human_minutes)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="dim">{verdict(p.of)}</p>
    </>
  );
}

const per = (x: number) => `${(x * 100).toFixed(0)} %`;

const Share = (p: { of: TemplateShare }) => (
  <>
    {ofAll(p.of.n, p.of.d)}
    {p.of.d > 0 && (
      <>
        <br />
        <small>
          {per(p.of.low)} to {per(p.of.high)}
        </small>
        <Interval n={p.of.n} d={p.of.d} />
      </>
    )}
  </>
);

// verdict says which lane is the better one, or why none is named.
function verdict(of: TemplateLanes): string {
  const few = of.lanes.filter((l) => l.merged.d < of.least);
  if (of.winner) return `More of ${inert(of.winner)} is merged: the ranges do not touch.`;
  if (of.lanes.length < 2) return "No winner is named: the other one has got no task yet.";
  if (few.length)
    return `No winner is named before ${of.least} tasks of each have ended: ${few
      .map((l) => `${inert(l.template)} has ${l.merged.d}`)
      .join(", ")}.`;
  return "No winner is named: the ranges of what was merged touch.";
}
