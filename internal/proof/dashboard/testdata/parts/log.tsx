// What runs in the browser for TestLog: a log as a page has it, with what it is asked to do.
// Each part answers what is wrong.
import { render } from "preact";
import { go } from "../../../../web/src/route";
import { spans } from "../../../../web/src/ui/ansi";
import { Lines } from "../../../../web/src/ui/lines";
import { Log } from "../../../../web/src/ui/log";
import { kinds, Transcript } from "../../../../web/src/ui/transcript";

const style = document.createElement("style");
style.textContent = `.logbox { display: flex; flex-direction: column; height: 500px } .vlist { flex: 1; overflow: auto }
  .log, .probe { font: 12px / 20px monospace } .probe { position: absolute; visibility: hidden }
  .l, .fold { height: 20px; padding: 0; border: 0; white-space: pre; overflow: hidden } .n { user-select: none } .heard { position: absolute }`;
document.head.append(style);

const at = document.getElementById("app")!;
const frames = async (n = 4) => {
  for (; n > 0; n--) await new Promise((done) => requestAnimationFrame(done));
};
const all = <T extends Element = HTMLElement>(what: string) => [...at.querySelectorAll<T>(what)];
const list = () => document.getElementById("log")!;
const marked = () => all(".l.on .t").map((e) => e.textContent).join("");
const seen = (e: Element) => {
  const a = e.getBoundingClientRect(), b = list().getBoundingClientRect();
  return a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
};
const button = (name: string) => all<HTMLButtonElement>("button").find((b) => (b.ariaLabel ?? b.textContent)!.startsWith(name))!;

async function draw(lines: Lines, tail = false, hash = "#") {
  render(null, at);
  go(location.pathname + hash, { replace: true });
  at.style.width = "1000px";
  render(<Log lines={lines} id="log" label="Log" tail={tail} kinds={kinds} />, at);
  await frames();
}
async function type(text: string) {
  const field = at.querySelector<HTMLInputElement>("input[type=search]")!;
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await frames();
}
const update = (data: object, t?: string) => ({ kind: "agent.update", data, ...(t ? { t } : {}) });
const says = (text: string) => update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text } });
const tool = (id: string, title: string, t?: string) => update({ sessionUpdate: "tool_call", toolCallId: id, title }, t);
const prints = (id: string, text: string) =>
  update({ sessionUpdate: "tool_call_update", toolCallId: id, content: [{ type: "content", content: { type: "text", text } }] });
const long = (n: number) => Array.from({ length: n }, (_, i) => `line ${i + 1} ` + "of a text that is wrapped where it is narrow ".repeat(3)).join("\n");

// An address leads to a line that comes after it was opened, and stays there.
async function link(wrong: string[]) {
  const lines = new Transcript();
  await draw(lines, true, "#L120");
  for (let i = 0; i < 315; i++) {
    lines.event(says(`word ${i + 1}.\n`));
    if (i % 50 === 49) await frames(1);
  }
  await frames();
  if (marked() !== "word 120.") wrong.push("#L120 marks " + marked());
  if (!all(".l.on").every(seen) || !all(".l.on").length) wrong.push("the line is not in sight");
  go("#L7", { replace: true });
  await frames();
  if (marked() !== "word 7." || !all(".l.on").every(seen)) wrong.push("#L7 then marks " + marked());
  const n = all<HTMLAnchorElement>(".n").find((e) => e.textContent === "9")!;
  n.click();
  await frames();
  if (location.hash !== "#L9" || marked() !== "word 9.") wrong.push(`a click on a number leads to ${location.hash} and marks ${marked()}`);
  list().focus();
  list().dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
  await frames();
  if (marked() !== "word 10.") wrong.push("j marks " + marked());
  button("Link to line").click();
  await frames();
  if (location.hash !== "#L10") wrong.push("the button gives the address " + location.hash);
}

// Another width moves nothing: the steps, what was found, and what is at the top.
async function width(wrong: string[]) {
  const lines = new Transcript();
  for (let i = 0; i < 30; i++) {
    lines.event(tool("t" + i, "step " + i));
    lines.event(prints("t" + i, long(9)));
    lines.event(says(`I say ${i} ` + "many words ".repeat(40)));
  }
  await draw(lines);
  await type("I say 17");
  const was = marked();
  if (!was.startsWith("I say 17 ")) wrong.push("found: " + was);
  at.style.width = "420px";
  await frames();
  if (marked() !== was) wrong.push(`after a change of width ${marked().slice(0, 80)} is marked`);
  for (const [i, s] of lines.steps.entries()) {
    const l = lines.lines[lines.first(s.line)!]!;
    if (l.text !== "$ step " + i) wrong.push(`step ${i} points to ${l.text}`);
  }
  list().scrollTop = lines.row(lines.steps[9]!.line)! * 20;
  await frames();
  at.style.width = "900px";
  await frames();
  const top = lines.at(Math.round(list().scrollTop / 20));
  if (top !== lines.steps[9]!.line) wrong.push(`the top was line ${lines.steps[9]!.line}, and is ${top}`);
  if (list().scrollHeight !== lines.rows.length * 20) wrong.push("the height is " + list().scrollHeight);
}

// Long output is folded, grows folded, is found, and can be unfolded.
async function fold(wrong: string[]) {
  const lines = new Transcript();
  lines.event(tool("a", "prints"));
  await draw(lines);
  for (let i = 1; i <= 300; i++) lines.event(update({ sessionUpdate: "tool_call_update", toolCallId: "a", _meta: { terminal_output_delta: { data: `out ${i}.\n` } } }));
  lines.event(says("the end"));
  await frames();
  if (lines.rows.length !== 1 + 41 + 1) wrong.push(`300 lines are ${lines.rows.length} rows`);
  if (!button("Unfold 260 lines")) wrong.push("no button unfolds: " + list().textContent);
  list().scrollTop = list().scrollHeight;
  await frames();
  if (!list().textContent!.includes("out 300.")) wrong.push("the end of the output is not shown");
  await type("out 150.");
  if (marked() !== "out 150.") wrong.push("in what is folded is found: " + marked());
  if (lines.rows.length !== 1 + 301 + 1) wrong.push(`unfolded there are ${lines.rows.length} rows`);
  list().scrollTop = 0;
  await frames();
  list().scrollTop = 400;
  await frames();
  const again = button("Fold 260");
  again?.click();
  await frames();
  if (lines.rows.length !== 1 + 41 + 1) wrong.push(`folded again there are ${lines.rows.length} rows`);
  if (list().scrollHeight !== lines.rows.length * 20) wrong.push("the height is " + list().scrollHeight);
  if (lines.text(0, 1e9).split("\n").length !== 302) wrong.push("the text has " + lines.text(0, 1e9).split("\n").length + " lines");
  await type("out 2");
  const place = () => at.querySelector(".tools .num")!.textContent;
  button("Next match").click();
  await frames();
  if (place() !== "2 of 111 found" || marked() !== "out 20.") wrong.push(`the next is ${place()}: ${marked()}`);
  button("Previous match").click();
  await frames();
  if (place() !== "1 of 111 found" || marked() !== "out 2.") wrong.push(`the one before is ${place()}: ${marked()}`);
}

// Kinds can be left out, which is in the address; a link to what is left out brings it back.
async function filter(wrong: string[]) {
  const lines = new Transcript();
  for (let i = 1; i <= 5; i++) {
    lines.event(says("say " + i));
    lines.event(tool("t" + i, "do " + i));
    lines.event(prints("t" + i, "out " + i));
  }
  await draw(lines);
  all<HTMLInputElement>(".kinds input").find((e) => e.parentElement!.textContent === "output")!.click();
  await frames();
  if (list().textContent!.includes("out") || !list().textContent!.includes("do 5")) wrong.push("without output: " + list().textContent);
  if (!new URLSearchParams(location.search).get("kinds")?.includes("says")) wrong.push("the address is " + location.href);
  lines.event(prints("t6", "out 6"));
  await type("out");
  if (lines.find("out").length || lines.rows.length !== 10) wrong.push(`${lines.rows.length} rows, found ${lines.find("out")}`);
  go("#L6", { replace: true });
  await frames();
  if (marked() !== "out 2") wrong.push("the link marks " + marked() + " at " + location.href);
}

// A selection that begins where nothing is drawn any more is copied as a whole, without the
// numbers and the breaks of wrapping.
async function copy(wrong: string[]) {
  const lines = new Lines();
  for (let i = 1; i <= 400; i++) lines.add("out", `\x1b[32mnumber\x1b[0m ${i}` + (i === 200 ? " wide".repeat(60) : ""));
  await draw(lines);
  const text = (says: string) => all(".l .t").find((e) => e.textContent === says)!;
  const first = text("number 3"), s = getSelection()!;
  s.setBaseAndExtent(first.firstChild!.firstChild!, 3, first.firstChild!.firstChild!, 5);
  await frames();
  list().scrollTop = lines.row(349)! * 20;
  await frames();
  if (first.isConnected) wrong.push("the beginning is still drawn: the test shows nothing");
  const last = text("number 351");
  s.extend(last.lastChild!, 3);
  await frames();
  const data = new DataTransfer();
  document.dispatchEvent(new ClipboardEvent("copy", { clipboardData: data, cancelable: true, bubbles: true }));
  const got = data.getData("text/plain").split("\n");
  if (got.length !== 349 || got[0] !== "ber 3" || got[348] !== "number 35" || got[197] !== "number 200" + " wide".repeat(60))
    wrong.push(`${got.length} lines are copied, from ${got[0]} to ${got.at(-1)}`);
  if (!all(".l.picked").length) wrong.push("what is selected is not marked");
}

// What comes is told politely and seldom, apart from what is drawn.
async function polite(wrong: string[]) {
  const timers: (() => void)[] = [], own = window.setInterval;
  window.setInterval = ((f: () => void, ms: number) => (ms === 10_000 ? timers.push(f) : own(f, ms))) as any;
  const lines = new Lines();
  lines.add("out", "one");
  await draw(lines, true);
  window.setInterval = own;
  const heard = () => all("[role=status]").map((e) => e.textContent).join("|");
  if (timers.length !== 1) wrong.push(`there are ${timers.length} timers`);
  timers[0]?.();
  for (let i = 0; i < 12; i++) {
    lines.add("out", "more " + i);
    await frames(2);
    if (heard()) wrong.push(`line ${i} is told at once: ${heard()}`);
  }
  if (!at.querySelector(".tools .num")!.textContent!.startsWith("13 lines")) wrong.push("the count is not shown");
  timers[0]?.();
  await frames();
  if (heard() !== "12 new lines") wrong.push("after a while is told: " + heard());
}

// Colours go on where a line is wrapped, and no letter is lost.
async function colours(wrong: string[]) {
  const raw = "plain \x1b[31mred words that are long " + "and go on ".repeat(20) + "\x1b[1mbold\x1b[0m then plain " + "x".repeat(150);
  const looks = (list: string[]) => list.flatMap((l) => spans(l).flatMap((s) => [...s.text].map((c) => c + s.class))).join("\n");
  for (const kind of ["out", "say"])
    for (const cols of [20, 33, 80, 111]) {
      const lines = new Lines();
      lines.resize(cols);
      lines.add(kind, raw);
      if (lines.lines.length < 3) wrong.push("it is not wrapped: the test shows nothing");
      if (looks(lines.lines.map((l) => l.text)) !== looks([raw])) wrong.push(`${kind} at ${cols} looks another way`);
    }
}

// What is said to an agent stands in its transcript, with what became of it.
async function messages(wrong: string[]) {
  const lines = new Transcript(), size = () => lines.size;
  const tells = (id: string, state: string, more: object = {}) => lines.event({ kind: "user.message", data: { id, state, ...more } });
  const text = () => lines.text(0, 1e9).split("\n");
  lines.sent("a", "Use the other one");
  if (lines.messages.get("a")?.state !== "unconfirmed") wrong.push("what nobody has confirmed is " + lines.messages.get("a")?.state);
  tells("a", "queued", { text: "Use the other one" });
  tells("b", "queued", { text: "And hurry" });
  tells("c", "queued", { text: "Stop" });
  tells("d", "dropped", { text: "Hello" });
  lines.sent("e", "Still there?");
  lines.event(says("more"));
  await draw(lines);
  const before = size();
  if (text().slice(0, 2).join("|") !== "message: Use the other one|queued: Held for its next turn.") wrong.push("queued: " + text().slice(0, 2));
  if (text()[7] !== "dropped: The run ended before it could read it.") wrong.push("dropped: " + text()[7]);
  tells("a", "delivered");
  if (text()[1] !== "read: It has read it.") wrong.push("read: " + text()[1]);
  tells("a", "read", { reply: "I use it.\nIt is better." });
  tells("b", "delivered");
  tells("b", "read");
  lines.event({ kind: "run.finished", data: { state: "succeeded" } });
  await frames();
  if (text()[1] !== "replied: I use it. It is better.") wrong.push("replied: " + text()[1]);
  if (text()[3] !== "read: It has read it.") wrong.push("read without a reply: " + text()[3]);
  for (const id of ["c", "e"]) if (lines.messages.get(id)?.state !== "dropped") wrong.push(`${id} is ${lines.messages.get(id)?.state} after the end`);
  if (text()[5] !== "dropped: The run ended before it could read it.") wrong.push("dropped at the end: " + text()[5]);
  if (size() !== before + 1) wrong.push("what became of a message has moved lines");
  if (all(".l.fate .status.good").length !== 1 || all(".l.fate .status.off").length !== 2) wrong.push("the states are not drawn as states");
}

// Steps have their durations and how they ended, and idle time is one line.
async function steps(wrong: string[]) {
  const lines = new Transcript(), t = (s: number) => new Date(1e12 + s * 1000).toISOString();
  const ends = (id: string, status: string, s: number, more: object = {}) => lines.event(update({ sessionUpdate: "tool_call_update", toolCallId: id, status, ...more }, t(s)));
  lines.event(tool("a", "build", t(0)));
  ends("a", "completed", 12, { _meta: { terminal_exit: { exit_code: 0 } } });
  lines.event(tool("b", "test", t(13)));
  ends("b", "failed", 200, { rawOutput: { exitCode: 3 } });
  lines.event(tool("c", "look", t(201)));
  ends("c", "completed", 201);
  lines.event({ kind: "run.parked", data: {}, t: t(202) });
  lines.event({ kind: "run.resumed", data: {}, t: t(202 + 7200) });
  const got = lines.text(0, 1e9);
  const want = "$ build\ndone, after 12 s, exit 0\n$ test\nfailed, after 3 min, exit 3\n$ look\nwaits for a person\n2 h without a word\ngoes on";
  if (got !== want) wrong.push(`the lines are ${JSON.stringify(got)}`);
  const took = lines.steps.map((s) => `${s.title} ${(s.to! - s.from!) / 1000}`).join();
  if (took !== "build 12,test 187,look 0,idle 7200") wrong.push("the steps are " + took);
}

// A tool is shown by what it runs, also where the agent tells that later than its name; a command gives way to a command alone.
async function titles(wrong: string[]) {
  const cases: [string, object[], string][] = [
    ["named later", [{ sessionUpdate: "tool_call", title: "bash", kind: "execute" }, { title: "make", rawInput: { command: "make all" } }, { title: "Builds it" }], "$ make all"],
    ["titled later", [{ sessionUpdate: "tool_call", title: "edit", kind: "edit" }, { title: "src/a.py" }], "± src/a.py"],
    ["at once", [{ sessionUpdate: "tool_call", title: "make", rawInput: { command: ["go", "test"] } }, { title: "go test" }], "$ go test"],
    ["of two lines", [{ sessionUpdate: "tool_call", title: "bash" }, { rawInput: { command: "cd a\nmake" } }], "$ cd a\nmake"],
    ["after output", [{ sessionUpdate: "tool_call", title: "bash" }, { _meta: { terminal_output_delta: { data: "one\n" } } }, { rawInput: { command: "make" } }], "$ bash\none\n$ make"],
  ];
  for (const [name, all, want] of cases) {
    const lines = new Transcript();
    for (const u of all) lines.event(update({ sessionUpdate: "tool_call_update", toolCallId: "a", ...u }));
    const got = lines.text(0, 1e9).trimEnd(),
      shown = lines.rows.map((r) => lines.lines[r]?.text).join("\n").trimEnd();
    if (got !== want || shown !== want) wrong.push(`${name}: ${JSON.stringify([got, shown])}`);
    const last = want.slice(want.lastIndexOf("\n" + want[0]) + 1).slice(2);
    if (lines.now !== last || lines.steps.at(-1)?.title !== last) wrong.push(`${name}: it does ${lines.now}`);
  }
}

Object.assign(window, { log: async (name: string) => {
  const wrong: string[] = [];
  await ({ link, width, fold, filter, copy, polite, colours, messages, steps, titles })[name]!(wrong);
  render(null, at);
  go(location.pathname + "#", { replace: true });
  return wrong;
} });
