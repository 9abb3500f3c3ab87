// The palette: every page, what the page at hand can do, objects by their titles. Pages
// say what they offer while they are shown.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

// What was found elsewhere fits, whatever its name is. What has a worth below 0 comes after
// all that has none. also are other words by which people look for it.
export type Command = {
  name: string;
  hint?: string;
  also?: string | undefined;
  found?: boolean;
  worth?: number;
  run: () => void;
};
type Source = (text: string, off: AbortSignal) => Command[] | Promise<Command[]>;

const sources: Source[] = [];

// offer adds commands until the returned function is called.
export function offer(s: Source): () => void {
  sources.push(s);
  return () => {
    sources.splice(sources.indexOf(s), 1);
  };
}

// asked counts how often the palette was asked for; with only it has what the page at
// hand can do, and nothing else.
const asked = signal<{ n: number; only: Source | undefined }>({ n: 0, only: undefined });
export const openPalette = () => {
  asked.value = { n: asked.value.n + 1, only: undefined };
};
export const openActions = (only: Source) => {
  asked.value = { n: asked.value.n + 1, only };
};

// Palette is filled when it is first asked for.
export function Palette(p: { fill: () => Promise<void> }) {
  const box = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState(""),
    [at, setAt] = useState(0),
    [matches, setHits] = useState<{ of: string; all: Command[] }>(), // none is known before a source has answered
    hits = matches?.all ?? [];
  const hurry = useRef(false); // Enter was pressed for a text before what fits it was found
  const marked = useRef<Command | undefined>(undefined); // the one that somebody went to
  const { n, only } = asked.value,
    [filled, setFilled] = useState(false),
    filling = useRef(false);
  useEffect(() => {
    if (!n || filling.current) return;
    filling.current = true;
    p.fill().then(
      () => setFilled(true),
      () => {
        filling.current = false;
      },
    );
  }, [n]);
  useLayoutEffect(() => {
    if (!n || box.current!.open) return;
    setText("");
    setAt(0);
    setHits(undefined); // those of the last time are no longer offered
    hurry.current = false;
    marked.current = undefined;
    box.current!.showModal();
  }, [n]);
  useEffect(() => {
    const on = (e: KeyboardEvent) => {
      if ((e.metaKey || e.ctrlKey) && e.key === "k") {
        e.preventDefault();
        openPalette();
      }
    };
    addEventListener("keydown", on);
    return () => removeEventListener("keydown", on);
  }, []);
  useEffect(() => {
    if (!n) return;
    const off = new AbortController(),
      from = only ? [only] : sources,
      found: Command[][] = from.map(() => []);
    let asks = from.length; // sources that have not answered
    const show = () => {
      if (off.signal.aborted) return;
      const now = rank(text, found.flat()),
        was = marked.current,
        still = was ? now.findIndex((c) => c.name === was.name && c.hint === was.hint) : -1;
      setHits({ of: text, all: now });
      if (hurry.current) setTimeout(hasten); // when all that is known at once has been found
      if (still >= 0) setAt(still); // what is found later does not come under the hand
    };
    const hasten = () => {
      const best = rank(text, found.flat())[0];
      if (!hurry.current || off.signal.aborted || !box.current!.open) return;
      if (best && ((best.worth ?? 0) >= 0 || !asks)) run(best);
    };
    const timer = setTimeout(
      () =>
        from.forEach(async (s, i) => {
          try {
            found[i] = await s(text, off.signal);
          } catch {
            /* one source fails, the others stay */
          }
          asks--;
          show();
        }),
      text ? 120 : 0,
    );
    return () => {
      clearTimeout(timer);
      off.abort();
    };
  }, [text, n, filled]);
  const run = (c: Command | undefined) => {
    hurry.current = false;
    if (c) {
      box.current!.close();
      c.run();
    }
  };
  const key = (e: KeyboardEvent) => {
    const to = (i: number) => {
      setAt(i);
      marked.current = hits[i];
    };
    if (e.key === "ArrowDown") to(Math.min(at + 1, hits.length - 1));
    else if (e.key === "ArrowUp") to(Math.max(0, at - 1));
    else if (e.key === "Enter" && matches?.of !== text && !marked.current) hurry.current = !!text;
    else if (e.key === "Enter") run(hits[at]);
    else return;
    e.preventDefault();
  };
  return (
    <dialog
      ref={box}
      aria-label={only ? "Actions" : "Commands"}
      class="palette"
      onClose={() => {
        hurry.current = false;
      }}
    >
      <input
        role="combobox"
        aria-expanded="true"
        aria-controls="commands"
        aria-activedescendant={hits.length ? "command" + at : undefined}
        aria-label="Command"
        placeholder={only ? "Do something with this" : "Go to a page, find an object, do something"}
        value={text}
        onInput={(e) => {
          setText(e.currentTarget.value);
          setAt(0);
          hurry.current = false;
          marked.current = undefined;
        }}
        onKeyDown={key}
      />
      <ul role="listbox" id="commands" aria-label="Matches">
        {hits.map((c, i) => (
          <li key={i + c.name} role="option" id={"command" + i} aria-selected={i === at} onClick={() => run(c)}>
            <span>{c.name}</span>
            {c.hint && <small>{c.hint}</small>}
          </li>
        ))}
      </ul>
      {matches && !hits.length && (text || only) && (
        <p class="empty">{text ? "Nothing fits." : "Nothing can be done here."}</p>
      )}
    </dialog>
  );
}

// rank sorts commands by how well their names fit.
function rank(text: string, all: Command[]): Command[] {
  const want = text.toLowerCase().split(/\s+/).filter(Boolean);
  const score = (c: Command) => {
    const name = `${c.name} ${c.hint ?? ""} ${c.also ?? ""}`.toLowerCase();
    let sum = c.worth ?? 0;
    for (const w of want) {
      const i = name.indexOf(w);
      if (i < 0 && c.found) continue;
      if (i < 0) return NaN;
      sum += i === 0 ? 3 : /\W/.test(name[i - 1]!) ? 2 : 1;
    }
    return sum;
  };
  return all
    .map((c) => ({ c, s: score(c) }))
    .filter((x) => !Number.isNaN(x.s))
    .sort((a, b) => b.s - a.s)
    .slice(0, 12)
    .map((x) => x.c);
}
