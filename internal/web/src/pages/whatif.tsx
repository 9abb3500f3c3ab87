// What if: the queue as it was, played with other boxes or under another policy file, beside
// what was.
import { useState } from "preact/hooks";
import { taskSimulate, type Simulation } from "../client.gen";
import { Form } from "../ui/form";
import { number, of, Text } from "../ui/inputs";
import { count, many, usd } from "../ui/money";
import { Empty, Head } from "../ui/parts";
import { words } from "../ui/status";
import { span } from "../ui/time";

export default function WhatIf() {
  const [found, find] = useState<Simulation>();
  return (
    <>
      <Head title="What if">
        <span class="grow" />
        <a href="/ui/flow">Flow of work</a>
      </Head>
      <p class="dim">
        The queue is played as it was, with other boxes or under another policy file. Nothing is changed, and it is no
        forecast: <a href="/ui/docs/simulate">what it does not know</a>.
      </p>
      <Form
        call={taskSimulate}
        submit="Play it"
        keep
        done={find}
        read={(f) => {
          const days = number(f, "days");
          return {
            hours: typeof days === "number" ? Math.round(days * 24) : days,
            slots: number(f, "slots"),
            seats: number(f, "seats"),
            policy: of(f, "policy"),
          };
        }}
      >
        {(wrong) => (
          <>
            <Text
              name="days"
              label="Days"
              hint="that have passed, 31 at most"
              wrong={wrong}
              field="hours"
              value={7}
              decimal
            />
            <Text
              name="slots"
              label="Tasks at once"
              hint="on all boxes; empty: as many as there were"
              wrong={wrong}
              decimal
            />
            <Text name="seats" label="Agents at once" hint="empty: as many as tasks" wrong={wrong} decimal />
            <Text
              name="policy"
              label="Policy file"
              hint="for all repositories; empty: what was in force"
              wrong={wrong}
              rows={6}
              code
              place={"version: 1\nmerge: {mode: auto}"}
            />
          </>
        )}
      </Form>
      {found && <Found of={found} />}
    </>
  );
}

function Found(p: { of: Simulation }) {
  const f = p.of;
  if (!f.tries) return <Empty>No try at a task began in this time.</Empty>;
  return (
    <section aria-label="What was, and what would have been">
      <h2>What was, and what would have been</h2>
      <p>
        {f.tries === 1 ? "One try" : `${count(f.tries)} tries`} with {many(f.slots, "task")} at once;{" "}
        {count(f.same_order)} began in the place that they had.
      </p>
      <div class="scroll" tabIndex={0} role="region" aria-label="Beside each other">
        <table class="bars narrows">
          <thead>
            <tr>
              <th>What</th>
              <th class="end">Tries</th>
              <th class="end">Was</th>
              <th class="end">Would be</th>
            </tr>
          </thead>
          <tbody>
            {f.waits.flatMap((w) => [
              <Row
                key={w.kind}
                name={`Wait of ${words(w.kind)}, half`}
                n={w.n}
                was={span(w.p50_s.was)}
                would={span(w.p50_s.would)}
              />,
              <Row
                key={w.kind + "9"}
                name={`Wait of ${words(w.kind)}, nine of ten`}
                n={w.n}
                was={span(w.p90_s.was)}
                would={span(w.p90_s.would)}
              />,
            ])}
            <Row name="Cost" n={f.tries} was={usd(f.cost.was)} would={usd(f.cost.would)} />
            <Row
              name="People asked about merges"
              n={f.tries}
              was={count(f.approvals.was)}
              would={count(f.approvals.would)}
            />
          </tbody>
        </table>
      </div>
      {f.cost.unpriced_calls > 0 && (
        <p class="dim">{many(f.cost.unpriced_calls, "call")} without a known price, in no sum.</p>
      )}
    </section>
  );
}

const Row = (p: { name: string; n: number; was: string; would: string }) => (
  <tr>
    <th scope="row">{p.name}</th>
    <td class="num end" data-name="Tries">
      {count(p.n)}
    </td>
    <td class="num end" data-name="Was">
      {p.was}
    </td>
    <td class="num end" data-name="Would be">
      {p.would}
    </td>
  </tr>
);
