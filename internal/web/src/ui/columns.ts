// Which columns of a grid fit beside its title, and how wide each is. The title keeps a
// share of the width; the columns that matter least leave first. Where even the first and the
// last leave it too little, or one would leave that must be seen (rank 5), rows have two
// lines and the title has the first one.
export type Track = { least: number; most: number; grows: boolean };
export type Shape = { class?: string; wide?: boolean; rank?: number };
export type Fit = { shown: number[]; template: string; two: boolean };

const title = 220, // the least width of the title
  share = 0.4, // of the width that the title has where other columns can leave
  gap = 12,
  pad = 34, // of a row, and what a scroll bar takes
  short = 90, // what a column of the second line mostly has, which ends where its text does
  pick = 24; // a box to choose the row with

// tracks reads the widths of the columns: of one width ("90px"), of at most one
// ("minmax(0,160px)"), or growing ("minmax(0,1fr)").
export function tracks(widths: string): Track[] {
  return [...widths.matchAll(/minmax\(([^,]+),\s*([^)]+)\)|(\S+)/g)].map((m) => {
    const low = parseFloat(m[1] ?? m[3]!),
      high = m[2] ?? m[3]!;
    if (high.endsWith("fr")) return { least: Math.max(low, 120), most: Infinity, grows: true };
    const most = parseFloat(high);
    return { least: m[3] ? most : Math.max(low, Math.min(most, 90)), most, grows: false };
  });
}

// fit chooses the columns that a list of a width has room for.
export function fit(widths: string, columns: Shape[], width: number, picks = false): Fit {
  const all = tracks(widths),
    named = columns.findIndex((c) => c.wide),
    main = named < 0 ? all.findIndex((t) => t.grows) : named,
    room = width - pad - (picks ? pick + gap : 0),
    most = Math.max(title, Math.round(room * share));
  const least = (i: number) => (i === main ? title : (all[i]?.least ?? 90));
  const needs = (some: number[], most = Infinity) =>
    some.reduce((n, i) => n + Math.min(least(i), most), (some.length - 1) * gap);
  // what may leave, the first to go first: by rank, and from the right
  const leave = columns
    .map((c, i) => ({ i, rank: c.rank ?? 0, less: /\bless\b/.test(c.class ?? "") }))
    .filter((c) => c.less && c.i !== main)
    .sort((a, b) => a.rank - b.rank || b.i - a.i)
    .map((c) => c.i);
  const one = columns.map((_, i) => i),
    two = columns.map((_, i) => i).filter((i) => i !== main);
  for (const i of leave) {
    if (needs(one) + most - title > room && (columns[i]!.rank ?? 0) < 5) one.splice(one.indexOf(i), 1);
    else if (needs(one) > room) one.splice(one.indexOf(i), 1);
  }
  const whole = columns.every((c, i) => (c.rank ?? 0) < 5 || one.includes(i));
  if ((needs(one) <= room && whole) || columns.length < 2)
    return {
      shown: one,
      two: false,
      template:
        (picks ? pick + "px " : "") +
        one.map((i) => track(all[i], i === main, Math.min(most, room - needs(one) + title))).join(" "),
    };
  for (const i of leave) if (needs(two, short) > room) two.splice(two.indexOf(i), 1);
  return {
    shown: [main, ...two],
    two: true,
    template:
      (picks ? pick + "px " : "") +
      two.map((_, n) => (n && n === two.length - 1 ? "1fr" : "minmax(0,max-content)")).join(" "),
  };
}

function track(t: Track | undefined, main: boolean, most: number): string {
  if (!t || main) return `minmax(${most}px,1fr)`;
  if (t.grows) return `minmax(${t.least}px,1fr)`;
  return t.least === t.most ? t.most + "px" : `minmax(${t.least}px,${t.most}px)`;
}
