// A series of values as bars, with the same as a table for readers and for who wants the numbers.

export interface Bar {
  name: string;
  value: number;
  says: string; // the value in words
}

const wide = 16,
  high = 120;

export function Chart(p: { label: string; bars: Bar[] }) {
  const most = Math.max(...p.bars.map((b) => b.value), 0);
  return (
    <figure class="fig card">
      {most > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={p.label}>
          <svg width={p.bars.length * wide} height={high + 1} aria-hidden="true">
            <line x1={0} x2={p.bars.length * wide} y1={high + 0.5} y2={high + 0.5} />
            {p.bars.map((b, i) => {
              const tall = most > 0 ? Math.max(b.value > 0 ? 1 : 0, Math.round((b.value / most) * high)) : 0;
              return (
                <g key={b.name}>
                  <title>{`${b.name}: ${b.says}`}</title>
                  <rect class="whole" x={i * wide} y={0} width={wide} height={high} />
                  <rect x={i * wide + 2} y={high - tall} width={wide - 4} height={tall} />
                </g>
              );
            })}
          </svg>
        </div>
      )}
      <details open={most === 0}>
        <summary>As a table</summary>
        <table class="bars">
          <tbody>
            {p.bars.map((b) => (
              <tr key={b.name}>
                <th scope="row">{b.name}</th>
                <td class="num end">{b.says}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}
