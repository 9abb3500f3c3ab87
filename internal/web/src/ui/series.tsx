// A series is values over time as bars that stretch with their card, with the same as a
// table and as a file.
import { keep } from "../api";

export type Part = {
  at: string; // when it begins
  name: string; // that time in words
  value: number;
  of?: number; // of a rate: of how many
  says: string; // the value in words
};

const high = 132,
  above = 16; // for the highest line's number

// step is the distance of lines: the smallest of 1, 2 and 5 with zeros, with at most four of them.
export function step(most: number, whole: boolean): number {
  const least = most / 3,
    ten = 10 ** Math.floor(Math.log10(least || 1));
  const one = [1, 2, 5, 10].map((x) => x * ten).find((x) => x >= least) ?? 1;
  return whole ? Math.max(1, one) : one;
}

export function Series(p: {
  label: string;
  parts: Part[];
  money?: boolean;
  nothing?: string;
  well?: [good: string, rest: string];
}) {
  const n = p.parts.length,
    most = Math.max(...p.parts.map((x) => x.of ?? x.value), 0),
    by = step(most, !p.money),
    top = Math.max(by, Math.ceil(most / by) * by),
    y = (v: number) => above + high - (v / top) * high,
    every = Math.max(1, Math.ceil(n / 5)),
    lines = Array.from({ length: Math.round(top / by) }, (_, i) => (i + 1) * by);
  const bar = (i: number, from: number, to: number, tone: string) =>
    to > from && (
      <rect
        class={tone}
        x={`${((i + 0.16) / n) * 100}%`}
        width={`${(0.68 / n) * 100}%`}
        y={y(to)}
        height={Math.max(1, y(from) - y(to))}
      />
    );
  return (
    <>
      {p.well && (
        <ul class="legend">
          {p.well.map((name, i) => (
            <li key={name}>
              <svg class="key" aria-hidden="true">
                <rect class={i ? "f-off" : "f-good"} width="10" height="10" rx="2" />
              </svg>
              {name}
            </li>
          ))}
        </ul>
      )}
      {most > 0 ? (
        <svg class="chart axed" width="100%" height={above + high + 22} role="img" aria-label={p.label}>
          <line class="grid zero" x1="-40" x2="100%" y1={above + high} y2={above + high} />
          {lines.map((v) => (
            <g key={v}>
              <line class="grid" x1="-40" x2="100%" y1={y(v)} y2={y(v)} />
              <text x="-40" y={y(v) - 4}>
                {p.money ? "$" + Number(v.toPrecision(3)) : v}
              </text>
            </g>
          ))}
          {p.parts.map((x, i) => (
            <g key={x.at}>
              <title>{`${x.name}: ${x.says}`}</title>
              <rect class="whole" x={`${(i / n) * 100}%`} width={`${100 / n}%`} y={above} height={high} />
              {bar(i, 0, x.value, x.of === undefined ? "f1" : "f-good")}
              {x.of !== undefined && bar(i, x.value, x.of, "f-off")}
              {i % every === 0 && (
                <text x={`${((i + 0.16) / n) * 100}%`} y={above + high + 16}>
                  {x.name}
                </text>
              )}
            </g>
          ))}
        </svg>
      ) : (
        <p class="empty">{p.nothing ?? "Nothing in this time."}</p>
      )}
      <Rows label={p.label} head={["When", "Value"]} rows={p.parts.map((x) => [x.name, x.says])} />
    </>
  );
}

const cell = (s: string) => (/[",\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s);

// csv has the browser keep rows as a file. What a spreadsheet would take for a formula is told apart.
export function csv(name: string, rows: string[][]) {
  const text = rows.map((r) => r.map((c) => cell(/^[=+@-]/.test(c) ? "'" + c : c)).join(",")).join("\r\n");
  keep(new Blob([text], { type: "text/csv" }), name + ".csv");
}

// Rows is a drawing as a table, and as a file.
export function Rows(p: { label: string; head: string[]; rows: string[][] }) {
  return (
    <footer class="spread">
      <details>
        <summary>As a table</summary>
        <div class="scroll" tabIndex={0} role="region" aria-label={p.label + ", as a table"}>
          <table class="bars">
            <thead>
              <tr>
                {p.head.map((h, i) => (
                  <th key={h} class={i ? "end" : undefined}>
                    {h}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {p.rows.map(([name, ...says]) => (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  {says.map((text, i) => (
                    <td key={p.head[i + 1]} class="num end">
                      {text}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
      <button
        type="button"
        class="plain"
        aria-label={p.label + " as CSV"}
        onClick={() => csv(p.label, [p.head, ...p.rows])}
      >
        CSV
      </button>
    </footer>
  );
}
