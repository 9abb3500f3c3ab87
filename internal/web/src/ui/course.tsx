// What a sum has grown to day by day, how far it may go, and where it is likely to end.

const high = 120,
  above = 16;

export type Ahead = { end: number; low: number; high: number };

// Course draws sums so far of days of a month that has more of them.
export function Course(p: {
  label: string;
  sums: number[];
  days: number; // of the whole month
  limit?: number | undefined;
  limitName: string;
  ahead?: Ahead | undefined;
  says: (value: number) => string;
}) {
  const last = p.sums.at(-1) ?? 0,
    top = Math.max(last, p.limit ?? 0, p.ahead?.high ?? 0) * 1.08 || 1,
    x = (day: number) => ((day - 0.5) / p.days) * 100, // of the middle of a day
    y = (v: number) => above + high - (v / top) * high,
    points = p.sums.map((v, i) => `${x(i + 1)},${y(v)}`),
    now = x(p.sums.length);
  return (
    <svg class="chart axed" width="100%" height={above + high + 4} role="img" aria-label={p.label}>
      <svg viewBox={`0 0 100 ${above + high}`} width="100%" height={above + high} preserveAspectRatio="none">
        <polygon class="band thin f1" points={[`${x(1)},${y(0)}`, ...points, `${now},${y(0)}`].join(" ")} />
        {p.ahead && (
          <>
            <polygon
              class="band f1"
              points={`${now},${y(last)} ${x(p.days)},${y(p.ahead.high)} ${x(p.days)},${y(p.ahead.low)}`}
            />
            <polyline class="ln l1 dash" points={`${now},${y(last)} ${x(p.days)},${y(p.ahead.end)}`} />
          </>
        )}
        <polyline class="ln l1" points={points.join(" ")} />
      </svg>
      <line class="grid zero" x1="-40" x2="100%" y1={above + high} y2={above + high} />
      {p.limit !== undefined && (
        <>
          <line class="cap" x1="-40" x2="100%" y1={y(p.limit)} y2={y(p.limit)} />
          <text class="mk" x="-40" y={y(p.limit) - 4}>
            {`${p.says(p.limit)} ${p.limitName}`}
          </text>
        </>
      )}
      <circle class="dot l1" cx={`${now}%`} cy={y(last)} r="4">
        <title>{p.says(last)}</title>
      </circle>
    </svg>
  );
}
