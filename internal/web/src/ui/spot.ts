// A spot is a file of a diff, or a line of its new side, as an address names it:
// #src/date.js:L12, or of its old one: #src/date.js:-L12. What a path may not have there is
// written as its number.
import type { Row } from "./patch";

export type Spot = { path: string; line?: number | undefined; old?: boolean | undefined };

// named is the name of a file whose path is told in quotes, because of what cannot be seen
// in it. One with bytes that are no text is known by the quotes alone.
const named = (path: string) =>
  /^".*"$/.test(path) && !/\\x[89a-f]/.test(path.replaceAll("\\\\", ""))
    ? path.slice(1, -1).replace(/\\(?:x(..)|u(.{4})|U(.{8})|(.))/g, (_, x, u, U, c: string) => {
        const n = x ?? u ?? U;
        return n ? String.fromCodePoint(parseInt(n, 16)) : ("\x07\b\f\n\r\t\v"["abfnrtv".indexOf(c)] ?? c);
      })
    : path;

// hashOf is the part of an address that names a spot.
export const hashOf = (s: Spot) =>
  "#" + named(s.path).split("/").map(encodeURIComponent).join("/") + (s.line ? (s.old ? ":-L" : ":L") + s.line : "");

// spotOf is the spot that an address names among the files of a diff, if there is one.
export function spotOf(hash: string, files: { path: string }[]): Spot | undefined {
  const [, path, old, line] = /^#(.*?)(?::(-?)L([1-9]\d{0,8}))?$/.exec(hash) ?? [];
  const find = (encoded: string) => {
    try {
      const path = decodeURIComponent(encoded);
      return files.find((f) => f.path === path) ?? files.find((f) => named(f.path) === path);
    } catch {
      return undefined; // it is no address of a path
    }
  };
  if (!path) return;
  // written by hand, a name that ends like a line is itself
  const of = find(path),
    whole = of ?? find(hash.slice(1));
  return whole && { path: whole.path, ...(of && line ? { line: Number(line), old: old === "-" } : {}) };
}

// rowOf is the row of a spot: that of its file, if it names no line or one that is not shown.
// It waits where the lines of the file are to come.
export function rowOf(rows: Row[], s: Spot): { row: number; line: boolean; waits: boolean } | undefined {
  const file = rows.findIndex((r) => r.t === "file" && r.file.path === s.path);
  if (file < 0) return;
  const first = rows[file + 2];
  if (s.line)
    for (let i = file + 1; i < rows.length; i++) {
      const r = rows[i]!;
      if (r.t === "file") break;
      const n = r.t === "one" ? (s.old ? r.old : r.new) : r.t === "two" && (s.old ? r.left : r.right)?.n;
      if (n === s.line) return { row: i, line: true, waits: false };
    }
  return { row: file, line: false, waits: first?.t === "say" && first.path !== undefined };
}

// fileAt is the place, among the rows of files, of the file that a row belongs to.
export function fileAt(starts: number[], row: number): number {
  let a = 0,
    b = starts.length;
  while (a < b) {
    const m = (a + b) >> 1;
    if (starts[m]! <= row) a = m + 1;
    else b = m;
  }
  return Math.max(0, a - 1);
}
