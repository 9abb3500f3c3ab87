// The palette: every page, what the page at hand can do, objects by their titles. Pages
// say what they offer while they are shown.
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

// What a server has found fits, whatever its name is.
export type Command = { name: string; hint?: string; found?: boolean; run: () => void };
type Source = (text: string, off: AbortSignal) => Command[] | Promise<Command[]>;

const sources: Source[] = [];

// offer adds commands until the returned function is called.
export function offer(s: Source): () => void {
  sources.push(s);
  return () => { sources.splice(sources.indexOf(s), 1); };
}

// asked counts how often the palette was asked for; with only it has what the page at
// hand can do, and nothing else.
const asked = signal<{ n: number; only: Source | undefined }>({ n: 0, only: undefined });
export const openPalette = () => { asked.value = { n: asked.value.n + 1, only: undefined }; };
export const openActions = (only: Source) => { asked.value = { n: asked.value.n + 1, only }; };

export function Palette() {
  const box = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState(""), [at, setAt] = useState(0), [hits, setHits] = useState<Command[]>([]);
  const { n, only } = asked.value;
  useEffect(() => {
    if (!n || box.current!.open) return;
    setText("");
    setAt(0);
    box.current!.showModal();
  }, [n]);
  useEffect(() => {
    const on = (e: KeyboardEvent) => { if ((e.metaKey || e.ctrlKey) && e.key === "k") { e.preventDefault(); openPalette(); } };
    addEventListener("keydown", on);
    return () => removeEventListener("keydown", on);
  }, []);
  useEffect(() => {
    if (!n) return;
    const off = new AbortController(), from = only ? [only] : sources, found: Command[][] = from.map(() => []);
    const show = () => { if (!off.signal.aborted) setHits(rank(text, found.flat())); };
    const timer = setTimeout(() => from.forEach(async (s, i) => {
      try { found[i] = await s(text, off.signal); show(); } catch { /* one source fails, the others stay */ }
    }), text ? 120 : 0);
    return () => { clearTimeout(timer); off.abort(); };
  }, [text, n]);
  const run = (c: Command | undefined) => { if (c) { box.current!.close(); c.run(); } };
  const key = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown") setAt(Math.min(at + 1, hits.length - 1));
    else if (e.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (e.key === "Enter") run(hits[at]);
    else return;
    e.preventDefault();
  };
  return <dialog ref={box} aria-label={only ? "Actions" : "Commands"} class="palette">
    <input role="combobox" aria-expanded="true" aria-controls="commands" aria-activedescendant={hits.length ? "command" + at : undefined} aria-label="Command"
      placeholder={only ? "Do something with this" : "Go to a page, find an object, do something"} value={text} onInput={(e) => { setText(e.currentTarget.value); setAt(0); }} onKeyDown={key} />
    <ul role="listbox" id="commands" aria-label="Matches">{hits.map((c, i) => <li key={i + c.name} role="option" id={"command" + i} aria-selected={i === at} onClick={() => run(c)}>
      <span>{c.name}</span>{c.hint && <small>{c.hint}</small>}</li>)}</ul>
    {text && !hits.length ? <p class="empty">Nothing fits.</p> : only && !hits.length && <p class="empty">Nothing can be done here.</p>}
  </dialog>;
}

// rank sorts commands by how well their names fit.
function rank(text: string, all: Command[]): Command[] {
  const want = text.toLowerCase().split(/\s+/).filter(Boolean);
  const score = (c: Command) => {
    const name = (c.name + " " + (c.hint ?? "")).toLowerCase();
    let sum = c.found ? 1 : 0;
    for (const w of want) {
      const i = name.indexOf(w);
      if (i < 0 && c.found) continue;
      if (i < 0) return -1;
      sum += i === 0 ? 3 : /\W/.test(name[i - 1]!) ? 2 : 1;
    }
    return sum;
  };
  return all.map((c) => ({ c, s: score(c) })).filter((x) => x.s >= 0).sort((a, b) => b.s - a.s).slice(0, 12).map((x) => x.c);
}
