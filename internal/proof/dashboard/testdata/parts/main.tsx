// What runs in the browser for TestPureParts: the parts of the dashboard that only
// calculate, on random input.
import { render } from "preact";
import { inert, plain, spans } from "../../../../web/src/ui/ansi";
import { layout, type Node } from "../../../../web/src/ui/dag";
import { changed, cuts, type Range } from "../../../../web/src/ui/lcs";
import { Markdown } from "../../../../web/src/ui/markdown";
import { Lines } from "../../../../web/src/ui/lines";
import { numbered, rows, type Hunk } from "../../../../web/src/ui/patch";
import { Transcript } from "../../../../web/src/ui/transcript";
import { effect } from "../../../../web/src/cards/planeffect";
import { packed } from "../../../../web/src/cards/sources";
import { wilson } from "../../../../web/src/ui/rate";
import { Reader } from "../../../../web/src/sse";
import { nasty, Rand, Report } from "./rand";

const show = JSON.stringify;
// control are characters that no line may show as they are.
const control = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/;

function ansi(t: Report) {
  const sequences = ["\x1b[31m", "\x1b[1;32m", "\x1b[0m", "\x1b[m", "\x1b[38;5;200m", "\x1b[38;2;1;2;3m", "\x1b[2J", "\x1b[10;20H", "\x1b[?25l", "\x1b]0;title\x07", "\x1b]8;;https://e.example\x1b\\", "\x1b(B", "\x1bM"];
  t.check("ansi keeps the text between sequences", 3000, (r) => {
    let text = "", all = "";
    for (let i = r.int(12); i >= 0; i--) {
      const s = r.text(8, ["a", "b ", "Z", "7", "é", "漢", "<b>", "\u202e", "\u0000"]);
      text += s;
      all += s + r.of(sequences);
    }
    const shown = spans(all).map((s) => s.text).join("");
    return shown !== inert(text) ? `${show(all)} is shown as ${show(shown)}` : inert(plain(all)) !== inert(text) ? `plain of ${show(all)} is ${show(plain(all))}` : "";
  });
  const looks = (list: string[]) => list.flatMap((l) => spans(l).flatMap((s) => [...s.text].map((c) => c + s.class))).join();
  t.check("a line that is wrapped looks as it did", 1500, (r) => {
    const lines = new Lines(), kind = r.of(["out", "say"]);
    let all = "";
    for (let i = r.int(30); i >= 0; i--) all += r.text(9, ["a", "b ", "long ", "漢", "👍", "é", " ", "\u202e", "\u0000"]) + r.of(sequences);
    lines.resize(20 + r.int(40));
    lines.add(kind, all);
    const wide = lines.lines.find((l) => plain(l.text).trimEnd().length > lines.width);
    return wide ? `${show(wide)} is wider than ${lines.width}` : looks(lines.lines.map((l) => l.text)) !== looks([all]) ? `${kind} ${show(all)} became ${show(lines.lines)}` : "";
  });
  t.check("ansi shows nothing that cannot be seen", 3000, (r) => {
    const all = r.text(60, nasty).replaceAll("\n", " "), out = spans(all);
    const bad = out.find((s) => control.test(s.text) || !/^(c\d)?( ?b)?$/.test(s.class));
    return bad ? `${show(all)} has the piece ${show(bad)}` : "";
  });
  for (const s of ["\x1b[", "\x1b]", "\x1b[0;", "\x1b[31ma", "\x1bP", "\x1b(", "\x1b[?", ";\x1b", "\x1b[ "]) t.grows("ansi", s, (all) => void spans(all));
}

const marked = (s: string, all: Range[]) => all.reduceRight((rest, [a, b]) => rest.slice(0, a) + rest.slice(b), s);

function lcs(t: Report) {
  const few = ["a", "b", "foo", "bar", " ", "  ", ".", "(", ")", "é", "漢", "👍"];
  t.check("words that differ", 3000, (r) => {
    const a = r.text(30, few);
    let b = a;
    if (r.int(3)) b = a.split(" ").map((w) => r.int(4) ? w : r.of(few)).join(" "); else b = r.text(30, few);
    const [x, y] = changed(a, b);
    for (const [s, all] of [[a, x], [b, y]] as const) {
      let last = 0;
      for (const [from, to] of all) { if (from < last || to <= from || to > s.length) return `${show([a, b])} has the ranges ${show(all)}`; last = to; }
    }
    return (x.length || y.length) && marked(a, x) !== marked(b, y) ? `${show([a, b])} without ${show([x, y])} differ: ${show([marked(a, x), marked(b, y)])}` : "";
  });
  t.check("cuts", 3000, (r) => {
    const s = r.text(80, ["a", "bc", " ", "漢", "👍", "é", "-"]), cols = 1 + r.int(30), all = cuts(s, cols);
    let last = 0;
    for (const [a, b] of all) {
      if (a !== last) return `${show(s)} at ${cols}: ${show(all)}`;
      last = b;
      if (/^[\udc00-\udfff]/.test(s.slice(a, b))) return `${show(s)} at ${cols} is cut within a letter`;
      if ([...s.slice(a, b)].length > cols) return `${show(s)} at ${cols}: ${show(s.slice(a, b))}`;
    }
    return last !== s.length ? `${show(s)} at ${cols} ends at ${last}` : "";
  });
  t.grows("words that differ", "a b ", (s) => void changed(s, s + "x"));
  t.grows("cuts", "漢a", (s) => void cuts(s, 80));
}

function patch(t: Report) {
  t.check("a diff loses no line", 1500, (r) => {
    const lines = r.many(25, () => r.of(["+", "-", " "]) + r.text(12, ["a", "b ", "word ", "漢", "\t", "\x1b[31m", "\u202e", "<b>"]));
    if (r.int(3) === 0) lines.push("\\ No newline at end of file");
    const hunk: Hunk = { old_start: 1 + r.int(99), old_lines: 0, new_start: 1 + r.int(99), new_lines: 0, section: r.text(5, nasty), lines };
    const cols = 10 + r.int(60), all = numbered(hunk);
    if (all.length !== lines.length) return `${lines.length} lines became ${all.length}`;
    const one = rows("x", { hunks: [hunk], cut: false }, [], false, cols), two = rows("x", { hunks: [hunk], cut: false }, [], true, cols);
    const text = (list: string[]) => list.join("");
    const want = text(all.map((l) => l.side.text)), got = text(one.map((x) => x.t === "one" ? x.side.text : ""));
    if (want !== got) return `unified ${show(lines)} became ${show(got)}`;
    const right = all.filter((l) => l.side.kind !== "del" && l.side.sign !== "\\"), left = all.filter((l) => l.side.kind !== "add" && l.side.sign !== "\\");
    const side = (which: "left" | "right") => text(two.map((x) => x.t === "two" && x[which] && x[which]!.sign !== "\\" && !(x[which]!.sign === " " && x[which]!.text.startsWith(" No newline")) ? x[which]!.text : ""));
    if (lines.at(-1)?.startsWith("\\")) return "";
    if (side("left") !== text(left.map((l) => l.side.text))) return `the left of ${show(lines)} became ${show(side("left"))}`;
    if (side("right") !== text(right.map((l) => l.side.text))) return `the right of ${show(lines)} became ${show(side("right"))}`;
    for (const x of two) if (x.t === "two") for (const s of [x.left, x.right]) for (const [a, b] of s?.marks() ?? []) if (a < 0 || b > s!.text.length || a >= b) return `the mark ${show([a, b])} of ${show(s)}`;
    return "";
  });
}

function dag(t: Report) {
  t.check("a drawing has no overlaps", 800, (r) => {
    const n = r.int(40), circles = r.int(4) === 0;
    const nodes: Node[] = Array.from({ length: n }, (_, i) => ({ id: "n" + i, label: "", up: r.many(4, () => ({ id: "n" + (circles ? r.int(n + 2) : r.int(i + 1)), kind: r.of(["code", "order"] as const) })).filter((u) => circles || u.id !== "n" + i) }));
    for (let i = nodes.length - 1; i > 0; i--) { const j = r.int(i + 1); [nodes[i], nodes[j]] = [nodes[j]!, nodes[i]!]; }
    const at = layout(nodes), taken = new Set<string>();
    for (const x of nodes) {
      const c = at.get(x.id);
      if (!c) return `${x.id} of ${show(nodes)} has no place`;
      if (taken.has(c.x + "," + c.y)) return `two of ${show(nodes)} are at ${show(c)}`;
      taken.add(c.x + "," + c.y);
      if (!circles) for (const u of x.up) if (at.get(u.id)!.x >= c.x) return `${x.id} is not after ${u.id} in ${show(nodes)}`;
    }
    return "";
  });
  t.grows("a drawing", "x", (s) => { // a chain, twenty times as long
    const n = s.length / 4;
    layout(Array.from({ length: n }, (_, i) => ({ id: "n" + i, label: "", up: i ? [{ id: "n" + (i - 1), kind: "code" as const }] : [] })));
  });
}

const allowed = new Set("DIV P STRONG EM CODE PRE BLOCKQUOTE UL OL LI TABLE THEAD TBODY TR TH TD HR A SMALL".split(" "));
const attributes = new Set(["class", "role", "aria-level", "aria-label", "tabindex", "href", "rel", "target", "scope", "start"]);

// drawn draws a text and says what is in it that may not be.
function drawn(text: string): [HTMLElement, string] {
  const box = document.createElement("div");
  render(<Markdown text={text} />, box);
  for (const e of box.querySelectorAll("*")) {
    if (!allowed.has(e.tagName)) return [box, "the element " + e.outerHTML.slice(0, 100)];
    for (const a of e.attributes) if (!attributes.has(a.name)) return [box, "the attribute " + a.name];
    const to = e.getAttribute("href");
    if (to !== null && (!/^https?:\/\//.test(to) || e.getAttribute("rel") !== "noreferrer noopener")) return [box, "the link " + to];
  }
  return [box, /[\u202a-\u202e\u2066-\u2069\u200b\x00-\x08]/.test(box.textContent!) ? "letters that turn text around" : ""];
}

function markdown(t: Report) {
  t.check("markdown draws no more than it may", 2500, (r) => {
    const text = r.text(80, nasty), wrong = drawn(text)[1];
    return wrong ? `${show(text)} has ${wrong}` : "";
  });
  t.check("markdown loses no word", 2500, (r) => {
    let n = 0;
    const w = () => "w" + n++ + "w";
    const phrase = () => Array.from({ length: 1 + r.int(4) }, () => r.of([w, () => `**${w()}**`, () => `*${w()}*`, () => "`" + w() + "`", () => `[${w()}](https://e.example/x)`, () => `<b>${w()}</b>`, () => `__${w()}__`, () => `${w()}*`, () => `[${w()}`, () => `_${w()}`])()).join(" ");
    const text = Array.from({ length: 1 + r.int(12) }, () => r.of([phrase, () => "# " + phrase(), () => "- " + phrase(), () => "1. " + phrase(), () => "> " + phrase(), () => "- [x] " + phrase(), () => "```\n" + w() + "\n```",
      () => `| ${w()} | ${w()} |\n|---|---|\n| ${w()} | ${w()} |`, () => "", () => "  " + phrase(), () => "---", () => "    " + phrase(), () => "#" + w()])()).join("\n");
    const [box, wrong] = drawn(text), shown = box.textContent!;
    for (let i = 0; i < n; i++) if (!shown.includes("w" + i + "w")) return `${show(text)} lost w${i}w: ${show(shown)}`;
    return wrong;
  });
  for (const s of ["*", "**", "**a", "`", "``a", "[", "[a](", "![", "> ", ">", "- ", "# ", "| a ", "__", "<", "https://", "~~~\n", "a\n", "1. \n", "|-|\n", "*a "]) t.grows("markdown", s, (all) => void drawn(all));
}

function transcript(t: Report) {
  t.check("a transcript throws at nothing", 800, (r) => {
    const any = (deep: number): any => r.of([() => r.text(20, nasty), () => null, () => r.int(99), () => deep ? r.many(3, () => any(deep - 1)) : 1, () => deep ? { type: r.of(["diff", "content", "text"]), content: any(deep - 1), text: any(0), newText: any(0), oldText: any(0), path: any(0) } : true])();
    const all = new Transcript();
    for (let i = r.int(30); i >= 0; i--) {
      all.event({ kind: r.of(["agent.update", "usage", "user.message", "run.accepted", "x"]), t: "2026-01-01T00:00:00Z",
        data: r.of([() => undefined, () => null, () => ({ id: any(0), state: r.of(["queued", "delivered", "read", "dropped", any(0)]), text: any(1), reply: any(1) }), () => ({ sessionUpdate: r.of(["agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan", "user_message_chunk", "?"]), content: r.of([() => any(2), () => [any(2), any(1)], () => ({ type: "text", text: r.text(30, nasty) })])(), entries: any(1), title: any(1), toolCallId: any(0), status: r.of(["completed", "failed", any(0)]), rawOutput: any(1), _meta: any(1) })])() as any });
      if (r.int(5) === 0) all.resize(10 + r.int(200));
    }
    for (const l of all.lines) if (typeof l.text !== "string" || spans(l.text).some((s) => control.test(s.text))) return "the line " + show(l);
    return "";
  });
  t.check("a transcript loses no word, whatever its width", 500, (r) => {
    const all = new Transcript();
    let n = 0, words = "";
    for (let i = 1 + r.int(20); i > 0; i--) {
      const text = Array.from({ length: 1 + r.int(12) }, () => "w" + n++ + "w").join(r.of([" ", "\n", "  ", "\t"]));
      words += text + " ";
      const kind = r.of(["agent_message_chunk", "agent_thought_chunk", "tool"]);
      if (kind === "tool") all.event({ kind: "agent.update", data: { sessionUpdate: "tool_call_update", toolCallId: "t" + i, content: [{ type: "content", content: { type: "text", text } }] } });
      else all.event({ kind: "agent.update", data: { sessionUpdate: kind, content: { type: "text", text: text + " " } } });
      if (r.int(4) === 0) all.resize(20 + r.int(100));
    }
    const same = (s: string) => s.replace(/\s+/g, "");
    const got = same(all.text(0, all.lines.length));
    if (got !== same(words)) return `${show(words)} became ${show(got)}`;
    all.resize(20 + r.int(100));
    return all.lines.some((l) => plain(l.text).trimEnd().length > all.width) ? "a line is wider than the width" : same(all.text(0, all.lines.length)) !== got ? "another width has another text" : "";
  });
}

function sse(t: Report) {
  t.check("frames come whole however they are cut", 1500, (r) => {
    const end = r.of(["\n", "\r\n", "\r"]), want: string[] = [];
    let all = "", id = "";
    for (let i = r.int(12); i > 0; i--) {
      const kind = r.int(5);
      if (kind === 0) { all += ": " + r.text(5, ["a", ":", " "]) + end + end; continue; }
      const data = r.many(3, () => r.text(10, ["a", "{", "\"", ":", "漢", " "])), event = r.int(2) ? "patch" : "";
      if (r.int(2)) { id = String(r.int(999)); all += "id: " + id + end; }
      if (event) all += "event:" + (r.int(2) ? " " : "") + event + end;
      for (const d of data) all += "data: " + d + end;
      all += end;
      if (data.length) want.push(show([id, event || "message", data.join("\n")]));
    }
    const reader = new Reader(), got: string[] = [];
    for (let at = 0; at < all.length;) { const n = 1 + r.int(9); for (const f of reader.take(all.slice(at, at + n))) got.push(show([f.id, f.event, f.data])); at += n; }
    return show(got) !== show(want) ? `${show(all)} gave ${got} in place of ${want}` : "";
  });
  t.grows("a frame in pieces", "data: a\n\n", (s) => { const reader = new Reader(); for (let i = 0; i < s.length; i += 1000) reader.take(s.slice(i, i + 1000)); });
}

// Each group that is held is started or waits, whatever it waits for, and no group is said twice.
function plan(t: Report) {
  t.check("what an approval starts", 1000, (r) => {
    const groups = [...Array(r.int(12))].map((_, i) => ({
      id: "g" + i, title: "group " + i + ".", status: r.of(["held", "done", "running", "failed"]),
      upstream: [...Array(r.int(3))].map(() => ({ group_id: "g" + r.int(12) })),
    }));
    const said = effect({ groups } as any, "Started: "), [starts, waits] = [said.includes("Started: "), said.includes("Waiting for others")];
    const held = groups.filter((g) => g.status === "held"),
      free = held.filter((g) => g.upstream.every((u) => groups.some((x) => x.id === u.group_id && x.status === "done")));
    if (starts !== free.length > 0 || waits !== held.length > free.length) return `${show(groups)}: ${said}`;
    const named = groups.filter((g) => said.includes(g.title));
    if (named.some((g) => g.status !== "held" || said.split(g.title).length !== 2)) return `${show(groups)} names another: ${said}`;
    const more = [...said.matchAll(/ and (\d+) more/g)].reduce((n, m) => n + Number(m[1]), 0);
    return named.length + more === held.length ? "" : `${held.length} are held: ${said}`;
  });
}

function board(t: Report) {
  t.check("widgets keep their order and their size, and none lies upon another", 1500, (r) => {
    const all = Array.from({ length: r.int(30) }, (_, i) => ({ key: String(i), w: 1 + r.int(12), h: 1 + r.int(8) })),
      from = r.int(9), out = packed(all, from);
    for (const [i, p] of out.entries()) {
      const a = all[i]!, b = out[i - 1];
      if (p.widget !== a.key || p.w !== a.w || p.h !== a.h) return `${show(a)} became ${show(p)}`;
      if (p.x < 0 || p.x + p.w > 12 || p.y < from) return `${show(p)} is not on the board`;
      if (b && (p.y < b.y || (p.y === b.y && p.x < b.x + b.w))) return `${show(p)} is before ${show(b)}`;
      if (out.slice(0, i).some((o) => p.x < o.x + o.w && o.x < p.x + p.w && p.y < o.y + o.h && o.y < p.y + p.h)) return `${show(p)} lies upon another`;
    }
    return out.length === all.length ? "" : "some are lost";
  });
  t.check("a rate lies within its range", 1500, (r) => {
    const d = r.int(1000), n = r.int(d + 1), [from, to] = wilson(n, d);
    return from < 0 || to > 1 || from > to || (d > 0 && (n / d < from - 1e-9 || n / d > to + 1e-9)) ? `${n} of ${d}: ${from} to ${to}` : "";
  });
}

Object.assign(window, { parts: (name: string, seed: number) => {
  const t = new Report(seed);
  ({ ansi, lcs, patch, dag, markdown, transcript, sse, board, plan })[name]!(t);
  return { n: t.n, wrong: t.wrong };
} });
