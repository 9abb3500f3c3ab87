// Values over time in up to five parts each, as bars upon each other, with the same as a table
// and as a file.
import { Rows, step } from "./series";

export type Layer = { name: string; tone: string; values: number[] };

const high = 132,
  above = 16; // for the highest line's number

// round is the distance of lines of time, with at most four of them.
function round(most: number): number {
  const at = [10, 30, 60, 300, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400, 172_800, 604_800];
  return at.find((s) => s >= most / 4) ?? Math.ceil(most / 4 / 604_800) * 604_800;
}

export function Stack(p: {
  label: string;
  names: string[]; // of the times
  layers: Layer[];
  says: (value: number) => string;
  line?: (value: number) => string; // of a grid line, where it is shorter
  whole?: boolean; // counts: no line is between two of them
  time?: boolean; // seconds: lines are at whole minutes, hours or days
  limit?: { value: number; name: string } | undefined;
  now?: number | undefined; // the time that is not over, which is drawn lighter
  nothing: string;
}) {
  const n = p.names.length,
    sums = p.names.map((_, i) => p.layers.reduce((s, l) => s + (l.values[i] ?? 0), 0)),
    most = Math.max(...sums, 0),
    by = p.time ? round(Math.max(most, 1)) : step(Math.max(most, p.limit?.value ?? 0), !!p.whole),
    top = Math.max(by, Math.ceil(Math.max(most, p.limit?.value ?? 0) / by - 1e-9) * by),
    y = (v: number) => above + high - (v / top) * high,
    every = Math.max(1, Math.ceil(n / 5));
  if (most === 0) return <p class="empty">{p.nothing}</p>;
  return (
    <>
      <ul class="legend">
        {p.layers.map((l) => (
          <li key={l.name}>
            <svg class="key" aria-hidden="true">
              <rect class={l.tone} width="10" height="10" rx="2" />
            </svg>
            {l.name}
          </li>
        ))}
      </ul>
      <svg class="chart axed" width="100%" height={above + high + 22} role="img" aria-label={p.label}>
        <line class="grid zero" x1="-40" x2="100%" y1={above + high} y2={above + high} />
        {Array.from({ length: Math.round(top / by) }, (_, i) => (i + 1) * by).map((v) => (
          <g key={v}>
            <line class="grid" x1="-40" x2="100%" y1={y(v)} y2={y(v)} />
            <text x="-40" y={y(v) - 4}>
              {(p.line ?? p.says)(v)}
            </text>
          </g>
        ))}
        {p.limit && (
          <>
            <line class="cap" x1="-40" x2="100%" y1={y(p.limit.value)} y2={y(p.limit.value)} />
            <text class="mk" x="100%" text-anchor="end" y={y(p.limit.value) - 4}>
              {p.limit.name}
            </text>
          </>
        )}
        {p.names.map((name, i) => {
          let from = 0;
          return (
            <g key={i} class={i === p.now ? "lighter" : undefined}>
              <title>
                {[
                  `${name}: ${p.says(sums[i]!)}`,
                  ...p.layers.filter((l) => l.values[i]).map((l) => `${l.name} ${p.says(l.values[i]!)}`),
                ].join("\n")}
              </title>
              <rect class="whole" x={`${(i / n) * 100}%`} width={`${100 / n}%`} y={above} height={high} />
              {p.layers.map((l) => {
                const v = l.values[i] ?? 0,
                  at = from;
                from += v;
                return (
                  v > 0 && (
                    <rect
                      key={l.name}
                      class={l.tone}
                      x={`${((i + 0.16) / n) * 100}%`}
                      width={`${(0.68 / n) * 100}%`}
                      y={y(from)}
                      height={Math.max(1, y(at) - y(from))}
                    />
                  )
                );
              })}
              {i % every === 0 && (
                <text x={`${((i + 0.16) / n) * 100}%`} y={above + high + 16}>
                  {name}
                </text>
              )}
            </g>
          );
        })}
      </svg>
      <Rows
        label={p.label}
        head={["When", ...p.layers.map((l) => l.name), "Together"]}
        rows={p.names.map((name, i) => [name, ...p.layers.map((l) => p.says(l.values[i] ?? 0)), p.says(sums[i]!)])}
      />
    </>
  );
}
