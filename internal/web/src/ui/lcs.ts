// Which words of two lines differ, and how long a text is in columns. Both are for
// text that was made inert.

export type Range = [from: number, to: number];

const word = /[\p{L}\p{N}_]+|\s+|./gu;

// changed returns the places of the words in a that b lacks, and the other way about.
// Lines that share less than a third have no marks: the whole line is another one.
export function changed(a: string, b: string): [Range[], Range[]] {
  if (a.length > 3000 || b.length > 3000) return [[], []];
  const x = a.match(word) ?? [],
    y = b.match(word) ?? [];
  let start = 0,
    end = 0;
  while (start < x.length && start < y.length && x[start] === y[start]) start++;
  while (end < x.length - start && end < y.length - start && x[x.length - 1 - end] === y[y.length - 1 - end]) end++;
  const keepX = new Set<number>(),
    keepY = new Set<number>();
  const n = x.length - start - end,
    m = y.length - start - end;
  if (n * m > 0 && n * m <= 20_000) {
    const t = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
    for (let i = n - 1; i >= 0; i--)
      for (let j = m - 1; j >= 0; j--) {
        t[i]![j] = x[start + i] === y[start + j] ? t[i + 1]![j + 1]! + 1 : Math.max(t[i + 1]![j]!, t[i]![j + 1]!);
      }
    for (let i = 0, j = 0; i < n && j < m; ) {
      if (x[start + i] === y[start + j]) {
        keepX.add(start + i++);
        keepY.add(start + j++);
      } else if (t[i + 1]![j]! >= t[i]![j + 1]!) i++;
      else j++;
    }
  }
  const letters = (all: string[], keep: Set<number>) =>
    all.reduce(
      (sum, w, i) => sum + ((i < start || i >= all.length - end || keep.has(i)) && w.trim() ? w.length : 0),
      0,
    );
  if (letters(x, keepX) * 3 < Math.max(a.trim().length, b.trim().length)) return [[], []];
  const ranges = (all: string[], keep: Set<number>) => {
    const out: Range[] = [];
    let at = 0;
    for (const [i, w] of all.entries()) {
      if (i >= start && i < all.length - end && !keep.has(i)) {
        const last = out[out.length - 1];
        if (last && last[1] === at) last[1] = at + w.length;
        else out.push([at, at + w.length]);
      }
      at += w.length;
    }
    return out;
  };
  return [ranges(x, keepX), ranges(y, keepY)];
}

// wide are characters that take two columns.
const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|[\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;

// cuts returns where a text is cut into pieces of at most cols columns.
export function cuts(s: string, cols: number): Range[] {
  if (s.length <= cols && !wide.test(s)) return [[0, s.length]];
  const out: Range[] = [];
  let from = 0,
    at = 0,
    used = 0;
  for (const c of s) {
    const w = wide.test(c) ? 2 : 1;
    if (used + w > cols && at > from) {
      out.push([from, at]);
      from = at;
      used = 0;
    }
    used += w;
    at += c.length;
  }
  out.push([from, at]);
  return out;
}
