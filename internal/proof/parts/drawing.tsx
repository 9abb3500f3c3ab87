// What runs in the browser for Draw: how long the drawing of much takes, beside a
// plain loop in the same page.
import { render } from "preact";
import { List } from "../../web/src/list";
import { Log } from "../../web/src/ui/log";
import { Table } from "../../web/src/ui/table";
import { Transcript } from "../../web/src/ui/transcript";

type Row = { id: string; title: string; created_at: string };

// settled waits until what is due was drawn, without waiting for a frame.
const settled = () => new Promise<void>((done) => { const c = new MessageChannel(); c.port1.onmessage = () => done(); c.port2.postMessage(0); });
const frame = () => new Promise<void>((done) => requestAnimationFrame(() => done()));

// plain is the time of a loop that does nothing of ours: text is made, split and counted.
function plain(): number {
  const t = performance.now();
  let n = 0;
  for (let i = 0; i < 40_000; i++) n += ("line " + i + " of a loop").split(" ").length;
  if (n !== 200_000) throw new Error("the loop is wrong");
  return performance.now() - t;
}

const box = () => { const at = document.getElementById("app")!; render(null, at); return at; };

async function patches() {
  const rows: Row[] = Array.from({ length: 5000 }, (_, i) => ({ id: "r" + i, title: "Row " + i, created_at: new Date(1e12 - i * 1000).toISOString() }));
  const list = new List<Row>(async () => ({ data: rows, next_cursor: null }), () => true);
  await list.load();
  const at = box();
  at.style.cssText = "display: flex; flex-direction: column; height: 800px";
  render(<Table list={list} id="rows" label="Rows" widths="1fr 1fr" empty="none" columns={[{ name: "Title", cell: (r) => r.title }, { name: "Id", cell: (r) => r.id }]} />, at);
  const grid = document.getElementById("rows")!;
  grid.style.cssText = "height: 600px; overflow: auto";
  await frame();
  await frame();
  let best = Infinity, loop = Infinity;
  for (let n = 1; n <= 15; n++) {
    loop = Math.min(loop, plain());
    const all = Array.from({ length: 500 }, (_, i) => ({ topic: "tasks", op: "upsert", id: "r" + i * 10, row: { ...rows[i * 10], title: "Turn " + n } })) as any;
    await settled();
    const t = performance.now();
    list.apply(all);
    await settled();
    best = Math.min(best, performance.now() - t);
    if (!document.getElementById("rows0")!.textContent!.includes("Turn " + n)) throw new Error("the row was not drawn: " + grid.textContent!.slice(0, 200));
  }
  return { ms: best, plain: loop, high: grid.scrollHeight, want: 5000 * 44 };
}

async function lines() {
  const all = new Transcript(), at = box();
  all.fold(false);
  at.style.cssText = "display: block";
  render(<Log lines={all} id="log" label="Log" tail />, at);
  const log = document.getElementById("log")!;
  log.style.cssText = "height: 600px; overflow: auto; line-height: 20px; font: 12px monospace";
  await frame();
  let loop = Infinity;
  for (let i = 0; i < 9; i++) loop = Math.min(loop, plain());
  const t = performance.now();
  for (let i = 0; i < 50_000; i++) {
    all.event({ kind: "agent.update", data: { sessionUpdate: "tool_call_update", toolCallId: "t" + (i >> 9), content: [{ type: "content", content: { type: "text", text: `line ${i} of a long log with some words\n` } }] } });
    if (i % 1000 === 999) await settled();
  }
  await frame();
  await settled();
  const ms = performance.now() - t;
  await frame();
  await frame();
  (window as any).kept = all;
  return { ms, plain: loop, high: log.scrollHeight, want: all.lines.length * 20, n: all.lines.length, last: log.textContent!.includes("line 49999 ") };
}

Object.assign(window, { figures: { patches, lines, empty: () => { box(); (window as any).kept = undefined; } } });
