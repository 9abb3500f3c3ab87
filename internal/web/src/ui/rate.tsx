// A rate is n of d, never a bare per cent: with the range in which it lies 19 times in 20.
import { count } from "./money";

// wilson is the interval of a share (Wilson's score), from 0 to 1.
export function wilson(n: number, d: number): [from: number, to: number] {
  if (d <= 0) return [0, 1];
  const z = 1.96,
    p = n / d,
    whole = 1 + (z * z) / d,
    mid = (p + (z * z) / (2 * d)) / whole,
    half = (z * Math.sqrt((p * (1 - p)) / d + (z * z) / (4 * d * d))) / whole;
  return [Math.max(0, mid - half), Math.min(1, mid + half)];
}

export const ofAll = (n: number, d: number) => (d ? `${count(n)} of ${count(d)}` : "nothing yet");

const per = (x: number) => `${(x * 100).toFixed(0)} %`;

// Interval draws the range of a rate on a line from nothing to all.
export function Interval(p: { n: number; d: number }) {
  if (!p.d) return null;
  const [from, to] = wilson(p.n, p.d);
  return (
    <svg
      class="iv"
      width="100%"
      height="14"
      role="img"
      aria-label={`${per(p.n / p.d)}, between ${per(from)} and ${per(to)}`}
    >
      <line class="grid" x1="0" x2="100%" y1="7" y2="7" />
      <rect
        class="range"
        x={`${(from * 100).toFixed(1)}%`}
        width={`${((to - from) * 100).toFixed(1)}%`}
        y="4"
        height="6"
        rx="3"
      />
      <circle class="pt" cx={`${((100 * p.n) / p.d).toFixed(1)}%`} cy="7" r="4" />
    </svg>
  );
}
