// Text as lines of one height. Everything is wrapped to the width in characters as it
// comes, so the place of line n is n × height however long the text is, and only what
// is on screen is drawn.
import { signal } from "@preact/signals";
import { plain } from "./ansi";

// A Line is a piece of a text that fits the width. Its kind begins with that of the
// text; " more" follows where the line goes on.
export type Line = { kind: string; text: string; of: number };

// An Entry is a text in the parts in which it came. All but its last line, rest, is wrapped
// for good, and ends before the line line. A part that comes is never joined to those
// before it: in a long text that would take the square of its parts.
type Entry = { kind: string; parts: string[]; rest: string; open: boolean; line: number };

// An entry whose last line is longer goes on in a new one: what comes bit by bit would
// otherwise be wrapped from the beginning of that line for each bit.
const tail = 8_000;

// prose is wrapped at words, everything else at columns.
const prose = (kind: string) => kind === "say" || kind === "think";

export class Lines {
  lines: Line[] = [];
  readonly version = signal(0);
  private entries: Entry[] = [];
  private cols = 110;
  private due = 0;

  get width() { return this.cols; }

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
      e = { kind, parts: [text], rest: text, open, line: this.lines.length };
      this.entries.push(e);
    }
    this.wrap(e, this.entries.length - 1);
    this.due ||= requestAnimationFrame(() => { this.due = 0; this.version.value++; });
  }

  // resize wraps everything anew.
  resize(cols: number) {
    cols = Math.max(20, cols);
    if (cols === this.cols) return;
    this.cols = cols;
    this.lines = [];
    this.entries.forEach((e, i) => { e.rest = e.parts.join(""); this.wrap(e, i); });
    this.version.value++;
  }

  clear() {
    this.lines = [];
    this.entries = [];
    this.version.value++;
  }

  private wrap(e: Entry, of: number) {
    const end = e.rest.lastIndexOf("\n") + 1;
    if (end > 0) {
      for (const raw of e.rest.slice(0, end - 1).split("\n")) this.line(e.kind, raw, of);
      e.rest = e.rest.slice(end);
    }
    e.line = this.lines.length;
    if (e.rest || e.parts.every((p) => !p)) this.line(e.kind, e.rest, of);
  }

  private line(kind: string, raw: string, of: number) {
    raw = raw.replace(/\r+$/, "");
    const back = raw.lastIndexOf("\r");
    if (back >= 0) raw = raw.slice(back + 1);
    raw = raw.replaceAll("\t", "    ");
    if (raw.length <= this.cols || plain(raw).length <= this.cols) { this.lines.push({ kind, text: raw, of }); return; }
    const cut = prose(kind) ? atWords(raw, this.cols) : atColumns(plain(raw), this.cols);
    cut.forEach((s, i) => this.lines.push({ kind: i ? kind + " more" : kind, text: s, of }));
  }

  // find returns the line after from that holds a text, or before it with -1, or -1.
  find(text: string, from: number, step: 1 | -1): number {
    const n = this.lines.length, want = text.toLowerCase();
    for (let i = 1; i <= n; i++) {
      const at = (((from + i * step) % n) + n) % n;
      if (plain(this.lines[at]!.text).toLowerCase().includes(want)) return at;
    }
    return -1;
  }

  count(text: string): number {
    const want = text.toLowerCase();
    return want ? this.lines.filter((l) => plain(l.text).toLowerCase().includes(want)).length : 0;
  }

  // text is what the lines from a to b hold, as one text.
  text(a: number, b: number): string {
    let out = "";
    for (const l of this.lines.slice(a, b + 1)) out += (l.kind.endsWith(" more") ? prose(l.kind.split(" ")[0]!) ? " " : "" : out ? "\n" : "") + plain(l.text);
    return out;
  }
}

function atWords(s: string, cols: number): string[] {
  const out: string[] = [];
  let row = "";
  for (let w of s.split(" ")) {
    while (w.length > cols) {
      if (row) { out.push(row); row = ""; }
      out.push(w.slice(0, cols));
      w = w.slice(cols);
    }
    if (row && row.length + w.length + 1 > cols) { out.push(row); row = w; } else row = row ? row + " " + w : w;
  }
  out.push(row);
  return out;
}

function atColumns(s: string, cols: number): string[] {
  const out: string[] = [];
  for (let i = 0; i < s.length; i += cols) out.push(s.slice(i, i + cols));
  return out;
}
