// A diff as rows of one height: files, hunks, lines, remarks. Long lines are wrapped to
// the width in characters, so that nothing is out of sight.
import { inert } from "./ansi";
import { changed, cuts, type Range } from "./lcs";

export type Change = {
  path: string;
  was: string | null;
  kind: string;
  type: string;
  was_type: string | null;
  binary: boolean;
  additions: number;
  deletions: number;
};
export type Hunk = {
  old_start: number;
  old_lines: number;
  new_start: number;
  new_lines: number;
  section: string;
  lines: string[];
};
export type Lines = { hunks: Hunk[]; cut: boolean };
// Note is a remark about a line.
export type Note = { path: string; line: number; side: "LEFT" | "RIGHT"; text: string; href: string };

// Side is a line as one side shows it. Its marks are found when they are drawn: most lines of
// a long diff are never on screen.
export type Side = { n: number | null; sign: string; text: string; marks: () => Range[]; kind: "add" | "del" | "" };
export type Row =
  | { t: "file"; file: Change; at: number }
  | { t: "gap" }
  | { t: "say"; text: string; kind?: string; path?: string }
  | { t: "note"; text: string; href: string }
  | { t: "one"; old: number | null; new: number | null; side: Side }
  | { t: "two"; left: Side | null; right: Side | null };

// generated are files that no person writes.
const generated =
  /(^|\/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|go\.sum|Cargo\.lock|poetry\.lock|composer\.lock|Gemfile\.lock)$|(^|\/)(dist|vendor|node_modules)\/|\.min\.(js|css)$|\.gen\.\w+$|_generated\.\w+$|\.pb\.go$|\.snap$|\.svg$/;

// folds tells whether a file is folded at first, and why.
export function folds(f: Change): string {
  if (generated.test(f.path)) return "generated";
  if (f.additions + f.deletions > 800) return "large";
  if (f.kind === "deleted") return "deleted";
  return "";
}

// clean is a line of a file as it is shown.
const clean = (s: string) =>
  inert(s.replace(/\r$/, "").replaceAll("\t", "    ")).replaceAll("\x1b", "‹U+001B›").replaceAll("\r", "‹U+000D›");

const unmarked = () => [];

type Line = { old: number | null; new: number | null; side: Side };

// numbered are the lines of a hunk with their numbers; words that changed are marked.
export function numbered(h: Hunk): Line[] {
  const out: Line[] = [];
  let o = h.old_start,
    n = h.new_start,
    dels: Line[] = [],
    adds: Line[] = [];
  const pair = () => {
    for (let i = 0; i < Math.min(dels.length, adds.length); i++) {
      const del = dels[i]!.side,
        add = adds[i]!.side;
      let both: [Range[], Range[]] | undefined;
      del.marks = () => (both ??= changed(del.text, add.text))[0];
      add.marks = () => (both ??= changed(del.text, add.text))[1];
    }
    dels = [];
    adds = [];
  };
  for (const raw of h.lines) {
    const sign = raw[0] ?? " ",
      text = clean(raw.slice(1));
    if (sign === "-") {
      const l: Line = { old: o, new: null, side: { n: o++, sign: "-", text, marks: unmarked, kind: "del" } };
      if (adds.length) pair();
      dels.push(l);
      out.push(l);
    } else if (sign === "+") {
      const l: Line = { old: null, new: n, side: { n: n++, sign: "+", text, marks: unmarked, kind: "add" } };
      adds.push(l);
      out.push(l);
    } else if (sign === "\\")
      out.push({ old: null, new: null, side: { n: null, sign: "\\", text, marks: unmarked, kind: "" } });
    else {
      pair();
      out.push({ old: o++, new: n, side: { n: n++, sign: " ", text, marks: unmarked, kind: "" } });
    }
  }
  pair();
  return out;
}

// fit cuts a side into pieces of cols columns, each with its part of the marks.
function fit(s: Side, cols: number): Side[] {
  return cuts(s.text, cols).map(([a, b], i) => ({
    ...s,
    n: i ? null : s.n,
    sign: i ? " " : s.sign,
    text: s.text.slice(a, b),
    marks: () =>
      s
        .marks()
        .filter(([x, y]) => x < b && y > a)
        .map(([x, y]) => [Math.max(x, a) - a, Math.min(y, b) - a] as Range),
  }));
}

// rows are the rows of one open file. cols are the columns of the text: of each side,
// if split.
export function rows(path: string, of: Lines, notes: Note[], split: boolean, cols: number): Row[] {
  const out: Row[] = [];
  const remark = (l: Line) => {
    for (const n of notes) {
      if (n.path !== path || (n.side === "LEFT" ? l.old : l.new) !== n.line) continue;
      for (const [a, b] of cuts(inert(n.text), Math.max(20, split ? cols * 2 : cols)))
        out.push({ t: "note", text: inert(n.text).slice(a, b), href: n.href });
    }
  };
  for (const h of of.hunks) {
    out.push({
      t: "say",
      text: inert(`@@ -${h.old_start},${h.old_lines} +${h.new_start},${h.new_lines} @@ ${h.section}`.trim()),
      kind: "at",
    });
    const lines = numbered(h);
    if (!split) {
      for (const l of lines) {
        for (const [i, s] of fit(l.side, cols).entries())
          out.push({ t: "one", old: i ? null : l.old, new: i ? null : l.new, side: s });
        remark(l);
      }
      continue;
    }
    for (let i = 0; i < lines.length; ) {
      const dels: Line[] = [],
        adds: Line[] = [];
      const remarks = (from: Line[]) => from.filter((l) => l.side.sign === "\\").length > 0;
      while (i < lines.length && lines[i]!.side.kind === "del") dels.push(lines[i++]!);
      if (dels.length && lines[i]?.side.sign === "\\" && lines[i + 1]?.side.kind === "add") dels.push(lines[i++]!);
      while (i < lines.length && lines[i]!.side.kind === "add") adds.push(lines[i++]!);
      if (adds.length && lines[i]?.side.sign === "\\" && !remarks(dels)) adds.push(lines[i++]!);
      if (!dels.length && !adds.length) {
        const l = lines[i++]!;
        const left = fit({ ...l.side, n: l.old }, cols),
          right = fit(l.side, cols);
        for (const [k, s] of left.entries()) out.push({ t: "two", left: s, right: right[k]! });
        remark(l);
        continue;
      }
      for (let k = 0; k < Math.max(dels.length, adds.length); k++) {
        const left = dels[k] ? fit(dels[k]!.side, cols) : [],
          right = adds[k] ? fit(adds[k]!.side, cols) : [];
        for (let r = 0; r < Math.max(left.length, right.length); r++)
          out.push({ t: "two", left: left[r] ?? null, right: right[r] ?? null });
        if (dels[k]) remark(dels[k]!);
        if (adds[k]) remark(adds[k]!);
      }
    }
  }
  if (of.cut) out.push({ t: "say", text: "The rest is more than is shown here." });
  if (!of.hunks.length && !of.cut) out.push({ t: "say", text: "No line changed." });
  return out;
}

// about says what is special of a change of a file.
export function about(f: Change): string {
  const out: string[] = [];
  if (f.kind !== "modified") out.push(f.kind === "type_changed" ? "another type" : f.kind);
  if (f.was) out.push("was " + inert(f.was));
  if (f.type !== "file") out.push(f.type);
  if (f.was_type) out.push("was a " + f.was_type);
  if (f.binary) out.push("binary");
  return out.join(", ");
}
