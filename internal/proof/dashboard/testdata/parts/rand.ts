// Random input that a seed decides, and what the checks have in common.
export class Rand {
  constructor(private s: number) {}
  // next is a number from 0 to 1 (mulberry32).
  next(): number {
    this.s = (this.s + 0x6d2b79f5) | 0;
    let t = Math.imul(this.s ^ (this.s >>> 15), 1 | this.s);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }
  int(n: number): number { return Math.floor(this.next() * n); }
  of<T>(all: readonly T[]): T { return all[this.int(all.length)]!; }
  many<T>(most: number, make: () => T): T[] { return Array.from({ length: this.int(most + 1) }, make); }
  text(most: number, from: readonly string[]): string { return this.many(most, () => this.of(from)).join(""); }
}

// nasty are the letters of hostile text.
export const nasty = [..."abc XYZ019 \t\n\r[];:m()<>&\"'`*_#|-+>~!/\\.,=%", "\x1b", "\x1b[", "\x1b]", "\x1b[31m", "\x1b[0m", "\x07", "\x00", "\x9b", "\u202e", "\u2066", "\u200b", "\u2028",
  "é", "漢", "字", "👩‍🚀", "\ud83d", "\ude80", "\u{e0041}", "<script>", "</pre>", "<img src=x onerror=alert(1)>", "javascript:alert(1)", "https://e.example/x", "](", "![", "```", "**", "- ", "1. ", "> ", "| "];

export class Report {
  readonly wrong: string[] = [];
  n = 0;
  constructor(private readonly seed: number) {}
  // check runs a piece of work on random input and notes what it says is wrong, or that it
  // threw. An empty text is right.
  check(what: string, times: number, work: (r: Rand, i: number) => string) {
    for (let i = 0; i < times; i++) {
      this.n++;
      const r = new Rand(this.seed * 1_000_003 + i);
      let said: string;
      try { said = work(r, i); } catch (e) { said = "it threw " + (e instanceof Error ? e.stack : e); }
      if (said) { this.wrong.push(`${what}, input ${i} of seed ${this.seed}: ${said.slice(0, 600)}`); return; }
    }
  }
  // grows notes if sixteen times the input takes more than a hundred times as long: what is
  // linear takes sixteen times, what is quadratic two hundred and fifty-six. It must do so five
  // times, since a busy machine makes single ones longer, and what is short is no matter.
  grows(what: string, small: string, work: (s: string) => void) {
    this.n++;
    const took = (s: string) => {
      const t = performance.now();
      work(s);
      return performance.now() - t;
    };
    let said = "";
    for (let i = 0; i < 5; i++) {
      const many = took(small.repeat(8000));
      if (many <= 1500) return;
      const one = Math.max(took(small.repeat(500)), 0.2);
      if (many <= 100 * one) return;
      said = `${what} of ${JSON.stringify(small)}: 500 take ${one.toFixed(2)} ms, 8,000 take ${many.toFixed(0)} ms`;
    }
    this.wrong.push(said);
  }
}
