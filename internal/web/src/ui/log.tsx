// Log draws lines: it follows the end until one scrolls up, finds text in all of them,
// and copies what is off screen.
import { useEffect, useRef, useState } from "preact/hooks";
import { spans } from "./ansi";
import { copy } from "./parts";
import { useKeys } from "./keys";
import type { Lines } from "./lines";
import { VList } from "./vlist";

const height = 20;

export function Log(p: { lines: Lines; label: string; id: string; tail?: boolean; file?: string }) {
  void p.lines.version.value;
  const box = useRef<HTMLDivElement>(null), probe = useRef<HTMLSpanElement>(null), field = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(""), [at, setAt] = useState<number | undefined>(lineOf(location.hash)), [follow, setFollow] = useState(p.tail ?? false), [held, setHeld] = useState(true);
  useEffect(() => {
    const size = new ResizeObserver(() => {
      if (!probe.current || !box.current) return; // told of its own removal
      const one = probe.current.getBoundingClientRect().width / 20;
      if (one > 0) p.lines.resize(Math.floor((box.current.clientWidth - 40) / one));
    });
    size.observe(box.current!);
    return () => size.disconnect();
  }, [p.lines]);
  const find = (step: 1 | -1, what = text) => {
    const hit = what ? p.lines.find(what, at ?? (step > 0 ? -1 : 0), step) : -1;
    if (hit >= 0) { setAt(hit); setFollow(false); }
  };
  const end = () => { setAt(undefined); setFollow(true); const el = document.getElementById(p.id); if (el) el.scrollTop = el.scrollHeight; };
  useKeys([{ keys: "f", does: "follow the end of the log", group: "Logs", run: () => (follow ? setFollow(false) : end()) },
    { keys: "G", does: "to the end of the log", group: "Logs", run: end },
    { keys: "n", does: "next match", group: "Logs", run: () => find(1) }, { keys: "p", does: "previous match", group: "Logs", run: () => find(-1) },
    { keys: "/", does: "find in the log", group: "Logs", run: () => field.current?.focus() }]);
  useEffect(() => {
    const on = (e: KeyboardEvent) => { if ((e.ctrlKey || e.metaKey) && e.key === "f" && !document.querySelector("dialog[open]")) { e.preventDefault(); field.current?.focus(); field.current?.select(); } };
    addEventListener("keydown", on);
    return () => removeEventListener("keydown", on);
  }, []);
  const hits = text ? p.lines.count(text) : 0;
  return <div class="logbox" ref={box}>
    <div class="bar"><input ref={field} type="search" aria-label="Find in the log" placeholder="Find  /" value={text}
      onInput={(e) => { setText(e.currentTarget.value); if (e.currentTarget.value) { const hit = p.lines.find(e.currentTarget.value, -1, 1); if (hit >= 0) { setAt(hit); setFollow(false); } } }}
      onKeyDown={(e) => { if (e.key === "Enter") { e.preventDefault(); find(e.shiftKey ? -1 : 1); } if (e.key === "Escape") e.currentTarget.blur(); }} />
      <span class="dim num" role="status">{text ? hits + " found" : p.lines.lines.length + " lines"}</span><span class="grow" />
      {p.tail && <button type="button" aria-pressed={follow && held} onClick={end}>Follow</button>}
      <button type="button" onClick={() => copy(p.lines.text(0, p.lines.lines.length))}>Copy all</button>
      {p.file && <a class="button" href={p.file} download>Download</a>}</div>
    <span class="probe" ref={probe} aria-hidden="true">00000000000000000000</span>
    <VList id={p.id} role="log" label={p.label} class="log" count={p.lines.lines.length} height={height} tail={follow} active={at} onTail={setHeld}
      row={(i) => { const l = p.lines.lines[i]!; return <div key={i} class={"l " + l.kind + (i === at ? " on" : "")}>{spans(l.text).map((s, k) => s.class ? <span key={k} class={s.class}>{s.text}</span> : s.text)}</div>; }} />
  </div>;
}

// lineOf is the line that an address names, such as #L120.
function lineOf(hash: string): number | undefined {
  const m = /^#L(\d+)$/.exec(hash);
  return m ? Number(m[1]) - 1 : undefined;
}
