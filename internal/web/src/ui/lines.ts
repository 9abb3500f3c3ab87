// Text as lines of one height. Everything is wrapped to the width in characters as it
// comes, so the place of row n is n × height however long the text is, and only what
// is on screen is drawn. What is wrapped keeps its number: line 120 is the same text at
// every width, whatever is folded and filtered.
import { signal } from "@preact/signals";
import { parted, plain, spans } from "./ansi";

// A Line is a piece of a text that fits the width. All pieces of what was one line before
// it was wrapped have its number n, from 0. of is the entry it
// belongs to.
export type Line = { kind: string; text: string; of: number; n: number };

// A Point is a letter of a line, as it is shown. line is its place in Lines.lines.
export type Point = { line: number; at: number };

// An Entry is a text in the parts in which it came. All but its last line, rest, is wrapped
// for good, and ends before the line line. A part that comes is never joined to those
// before it: in a long text that would take the square of its parts. Its lines begin at
// the line first, and what is shown of them at the row row.
type Entry = {
  kind: string;
  parts: string[];
  rest: string;
  open: boolean;
  line: number;
  first: number;
  row: number;
  unfolded: boolean;
  at: number; // when it came, NaN where that is not known
};

// An entry whose last line is longer goes on in a new one: what comes bit by bit would
// otherwise be wrapped from the beginning of that line for each bit.
const tail = 8_000;

// Of an output of more lines than most, only its beginning and its end are shown until
// somebody unfolds it.
const most = 40,
  kept = most / 2;

const foldable = (kind: string) => kind === "out" || kind === "add" || kind === "del";
// prose is wrapped at words, everything else at columns.
const prose = (kind: string) => kind === "say" || kind === "think" || kind === "user";
// wide is how many columns a kind has of all. What an agent says is read as text: its letters
// are of their own widths, capitals wider than those of a program, and long lines are hard to read.
const wide = (kind: string, cols: number) => (kind === "say" ? Math.min(96, Math.floor(cols * 0.8)) : cols);
// single is one line that is cut off where it is too long, since its text changes later.
const single = (kind: string) => kind === "fate";

export class Lines {
  lines: Line[] = [];
  // rows are what is shown: places in lines, and ~of for the fold of the entry of.
  rows: number[] = [];
  readonly version = signal(0);
  private entries: Entry[] = [];
  protected clock = NaN; // when what is added came, in milliseconds
  private cols = 110;
  private due = 0;
  private hidden = "";
  private hiding = new Set<string>();
  private folds = true;

  get width() {
    return this.cols;
  }

  // size is the number of lines before they are wrapped.
  get size() {
    return this.lines.length ? this.lines[this.lines.length - 1]!.n + 1 : 0;
  }

  // add appends a text; what is open goes on with the next text of its kind. Only the
  // last line of what is open is wrapped again.
  add(kind: string, text: string, open = false) {
    let e = this.entries[this.entries.length - 1];
    if (!open) text = text.replace(/\n+$/, "");
    if (e?.open && e.kind === kind && e.rest.length < tail) {
      e.parts.push(text);
      e.rest += text;
      e.open = open;
      this.lines.length = e.line;
    } else {
      const line = this.lines.length;
      e = {
        kind,
        parts: [text],
        rest: text,
        open,
        line,
        first: line,
        row: this.rows.length,
        unfolded: false,
        at: this.clock,
      };
      this.entries.push(e);
    }
    const of = this.entries.length - 1,
      from = e.line;
    this.wrap(e, of);
    this.show(e, of, from);
    this.changed();
  }

  // newest is the entry that came last.
  protected get newest() {
    return this.entries.length - 1;
  }

  // set puts another text in the place of an entry that is a single line.
  protected set(of: number, text: string) {
    const e = this.entries[of]!;
    e.parts = [text];
    e.rest = text;
    this.lines[e.first] = { ...this.lines[e.first]!, text: text.replace(/\s+/g, " ") };
    this.changed();
  }

  // replace puts another text in the place of what came last.
  protected replace(text: string) {
    const of = this.entries.length - 1,
      e = this.entries[of]!;
    e.parts = [text];
    e.rest = text;
    e.line = this.lines.length = e.first;
    this.wrap(e, of);
    this.show(e, of, e.first);
    this.changed();
  }

  // changed has what shows the lines draw them again, at most once a frame.
  protected changed() {
    this.due ||= requestAnimationFrame(() => {
      this.due = 0;
      this.version.value++;
    });
  }

  // resize wraps everything anew.
  resize(cols: number) {
    cols = Math.max(20, cols);
    if (cols === this.cols) return;
    this.cols = cols;
    this.lines = [];
    this.rows = [];
    this.entries.forEach((e, i) => {
      e.rest = e.parts.join("");
      e.first = e.line = this.lines.length;
      e.row = this.rows.length;
      this.wrap(e, i);
      this.show(e, i, e.first);
    });
    this.version.value++;
  }

  clear() {
    this.lines = [];
    this.rows = [];
    this.entries = [];
    this.version.value++;
  }

  // hide leaves some kinds of lines out.
  hide(kinds: string[]) {
    if (kinds.join() === this.hidden) return;
    this.hidden = kinds.join();
    this.hiding = new Set(kinds);
    this.again();
  }

  // fold says whether long output is folded.
  fold(on: boolean) {
    if (on === this.folds) return;
    this.folds = on;
    this.again();
    this.version.value++;
  }

  // unfold shows all lines of an entry, or folds them again.
  unfold(of: number, on: boolean) {
    this.entries[of]!.unfolded = on;
    this.again();
    this.version.value++;
  }

  // folded says how many lines a fold stands for, and whether they are shown.
  folded(of: number): { lines: number; open: boolean; first: number } {
    const e = this.entries[of]!,
      end = this.entries[of + 1]?.first ?? this.lines.length;
    return { lines: end - e.first - 2 * kept, open: e.unfolded, first: e.first + kept };
  }

  // again says anew which lines are shown.
  private again() {
    this.rows = [];
    this.entries.forEach((e, i) => {
      e.row = this.rows.length;
      this.show(e, i, e.first, this.entries[i + 1]?.first);
    });
  }

  // show puts the lines of an entry into the rows. Those before the line from are there.
  private show(e: Entry, of: number, from: number, end = this.lines.length) {
    if (this.hiding.has(e.kind)) return;
    const push = (a: number, b: number) => {
      for (let i = a; i < b; i++) this.rows.push(i);
    };
    if (!this.folds || end - e.first <= most || !foldable(e.kind)) {
      this.rows.length = e.row + from - e.first;
      return push(from, end);
    }
    if (e.unfolded && from - e.first > most) {
      this.rows.length = e.row + from - e.first + 1;
      return push(from, end);
    }
    this.rows.length = e.row;
    push(e.first, e.first + kept);
    this.rows.push(~of);
    push(e.unfolded ? e.first + kept : end - kept, end);
  }

  private wrap(e: Entry, of: number) {
    if (single(e.kind)) {
      this.lines.push({ kind: e.kind, text: e.rest.replace(/\s+/g, " "), of, n: this.size });
      return;
    }
    const end = e.rest.lastIndexOf("\n") + 1;
    if (end > 0) {
      for (const raw of e.rest.slice(0, end - 1).split("\n")) this.line(e.kind, raw, of);
      e.rest = e.rest.slice(end);
    }
    e.line = this.lines.length;
    if (e.rest || e.parts.every((p) => !p)) this.line(e.kind, e.rest, of);
  }

  private line(kind: string, raw: string, of: number) {
    const n = this.size;
    raw = raw.replace(/\r+$/, "");
    const back = raw.lastIndexOf("\r");
    if (back >= 0) raw = raw.slice(back + 1);
    raw = raw.replaceAll("\t", "    ");
    const cols = wide(kind, this.cols),
      text = raw.length <= cols ? "" : plain(raw);
    if (text.length <= cols) {
      this.lines.push({ kind, text: raw, of, n });
      return;
    }
    for (const part of parted(raw, cuts(text, cols, prose(kind)))) this.lines.push({ kind, text: part, of, n });
  }

  // first is the place in lines of the line of a number, which is undefined while there is none.
  first(n: number): number | undefined {
    if (n < 0 || n >= this.size) return;
    return least(this.lines.length, (i) => this.lines[i]!.n >= n);
  }

  // told is when the entry came that begins with a line of lines, if that is another second
  // than that of the entry before it.
  told(place: number): number | undefined {
    const of = this.lines[place]!.of,
      e = this.entries[of]!;
    if (e.first !== place || !e.at) return;
    const before = this.entries[of - 1]?.at ?? NaN;
    return Math.floor(before / 1000) === Math.floor(e.at / 1000) ? undefined : e.at;
  }

  // timed says whether the first of the lines has a time.
  get timed(): boolean {
    return this.entries.length > 0 && !!this.entries[0]!.at;
  }

  // since is the number of the first line that came in the last milliseconds, if others came before.
  since(ms: number): number | undefined {
    const newest = this.entries.findLast((e) => e.at)?.at ?? NaN,
      e = this.entries.find((e) => e.at >= newest - ms);
    return e && e !== this.entries[0] ? this.lines[e.first]?.n : undefined;
  }

  // next is the number of the first line after a number that is of one of some kinds; the first of all behind the last.
  next(kinds: string[], after = -1): number | undefined {
    const fits = (l: Line) => kinds.includes(l.kind);
    return (this.lines.find((l) => l.n > after && fits(l)) ?? this.lines.find(fits))?.n;
  }

  // row is the row that shows the line of a number, or the next one if it is not shown.
  row(n: number): number | undefined {
    const i = this.first(n);
    return i === undefined ? undefined : least(this.rows.length, (r) => this.place(r) >= i);
  }

  // at is the number of the line that a row shows.
  at(row: number): number | undefined {
    return this.lines[Math.ceil(this.place(row))]?.n;
  }

  // place is where a row stands in lines; a fold stands before those that it folds.
  private place(row: number): number {
    const i = this.rows[row];
    return i === undefined ? NaN : i >= 0 ? i : this.entries[~i]!.first + kept - 0.5;
  }

  // hides says whether the line of a number is of a kind that is left out.
  hides(n: number): boolean {
    const i = this.first(n);
    return i !== undefined && this.hiding.has(this.lines[i]!.kind);
  }

  // reveal unfolds what folds the line of a number, and says whether there was such a fold.
  reveal(n: number): boolean {
    const i = this.first(n),
      row = this.row(n);
    if (i === undefined || row === undefined || this.hides(n) || this.rows[row] === i) return false;
    this.unfold(this.lines[i]!.of, true);
    return true;
  }

  // find returns the numbers of the lines that hold a text, folded ones too, but not those
  // of a kind that is left out.
  find(text: string): number[] {
    const want = text.toLowerCase(),
      out: number[] = [];
    if (!want) return out;
    for (let i = 0; i < this.lines.length; ) {
      const l = this.lines[i]!;
      let all = plain(l.text);
      for (i++; this.lines[i]?.n === l.n; i++) all += plain(this.lines[i]!.text);
      if (!this.hiding.has(l.kind) && all.toLowerCase().includes(want)) out.push(l.n);
    }
    return out;
  }

  // text is what the lines from a to b hold, as one text without the breaks of wrapping.
  text(a: number, b: number): string {
    let out = "",
      n = -1;
    for (const l of this.lines.slice(a, b + 1)) {
      out += (l.n !== n && n >= 0 ? "\n" : "") + plain(l.text);
      n = l.n;
    }
    return out;
  }

  // between is what is shown from one letter to another, folded lines too, but not those
  // of a kind that is left out.
  between(a: Point, b: Point): string {
    let out = "",
      n = -1;
    for (let i = a.line; i <= b.line && i < this.lines.length; i++) {
      const l = this.lines[i]!;
      if (this.hiding.has(l.kind)) continue;
      const all = shown(l.text);
      out += (l.n !== n && n >= 0 ? "\n" : "") + all.slice(i === a.line ? a.at : 0, i === b.line ? b.at : all.length);
      n = l.n;
    }
    return out;
  }
}

// shown is a line as it is drawn.
export const shown = (line: string) =>
  spans(line)
    .map((s) => s.text)
    .join("");

// least is the first number below n of which is is true, or n.
function least(n: number, is: (i: number) => boolean): number {
  let a = 0;
  while (a < n) {
    const m = (a + n) >> 1;
    if (is(m)) n = m;
    else a = m + 1;
  }
  return a;
}

// cuts are the letters before which a text is wrapped: after a space where it can be, and
// never within a letter. A space at the end of a line may stand beyond the width.
function cuts(s: string, cols: number, words: boolean): number[] {
  const out: number[] = [];
  for (let at = 0; s.length - at > cols; ) {
    const space = words ? s.lastIndexOf(" ", at + cols) : -1;
    let to = space > at ? space + 1 : at + cols;
    if (to < s.length && /[\udc00-\udfff]/.test(s[to]!) && /[\ud800-\udbff]/.test(s[to - 1]!)) to--;
    if (to >= s.length) break;
    out.push(to);
    at = to;
  }
  return out;
}
