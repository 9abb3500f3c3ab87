// Log draws lines: it follows the end until one scrolls up, finds text in all of them,
// leads to a line and gives its address, folds long output, and copies what is off screen.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { go, here, query, setQuery } from "../route";
import { spans } from "./ansi";
import { single, useKeys } from "./keys";
import type { Lines } from "./lines";
import { many } from "./money";
import { copy } from "./parts";
import { useSelection } from "./selection";
import { Status } from "./status";
import { VList } from "./vlist";

const height = 20;

type Props = {
  lines: Lines;
  label: string;
  id: string;
  tail?: boolean; // more lines may come
  kinds?: Record<string, string[]>; // of lines, by names of which one can choose
  wrong?: string[]; // kinds of lines that tell of a failure
  file?: boolean; // it is a file: its lines have their numbers at every width, and none is left out
  children?: ComponentChildren; // further controls
};

export function Log(p: Props) {
  void p.lines.version.value;
  const lines = p.lines,
    box = useRef<HTMLDivElement>(null),
    probe = useRef<HTMLSpanElement>(null),
    field = useRef<HTMLInputElement>(null),
    keep = useRef<{ line: number; y?: number } | undefined>(undefined); // a line to have in sight once it is drawn
  const hash = here.value.hash;
  const [text, setText] = useState(""),
    [at, setAt] = useState<number>(), // the line that is marked
    [goal, setGoal] = useState<number>(), // the line that is to be shown once it is there
    [follow, setFollow] = useState((p.tail ?? false) && lineOf(hash) === undefined),
    [held, setHeld] = useState(true),
    [fold, setFold] = useState(true),
    [told, tell] = useState("");
  const seen = kindsOf(p.kinds);
  useMemo(() => lines.hide(p.kinds ? hiddenBy(p.kinds, seen) : []), [lines, seen.join()]);
  const list = () => document.getElementById(p.id);

  // hold keeps the marked line where it is while rows come or go above it; the first one in
  // sight, if that one is not.
  const hold = () => {
    const el = list();
    if (!el || (follow && held)) return;
    const row = Math.floor(el.scrollTop / height),
      marked = at === undefined ? undefined : lines.row(at),
      line = marked !== undefined && marked >= row && marked < row + el.clientHeight / height ? at : lines.at(row);
    if (line !== undefined) keep.current ??= { line, y: (lines.row(line) ?? row) * height - el.scrollTop };
  };
  const now = useRef(hold);
  now.current = hold;
  useEffect(() => {
    const size = new ResizeObserver(() => {
      const one = probe.current && probe.current.getBoundingClientRect().width / 20,
        gutter = probe.current?.nextElementSibling?.getBoundingClientRect().width ?? 0;
      if (!one || !box.current) return; // told of its own removal
      const cols = Math.max(20, Math.floor((box.current.clientWidth - 40 - gutter) / one));
      if (cols === lines.width) return;
      now.current();
      lines.resize(cols);
    });
    size.observe(box.current!);
    return () => size.disconnect();
  }, [lines]);

  const show = (line: number) => {
    setFollow(false);
    setGoal(line);
  };
  useEffect(() => {
    const line = lineOf(hash);
    if (line !== undefined) show(line);
  }, [hash]);
  useLayoutEffect(() => {
    if (goal !== undefined && goal < lines.size) {
      if (lines.hides(goal)) return setQuery({ kinds: "" }); // which draws again
      keep.current = { line: goal };
      setAt(goal);
      setGoal(undefined);
      if (lines.reveal(goal)) return; // which draws again
    }
    const el = list(),
      to = keep.current;
    if (!el || !to) return;
    keep.current = undefined;
    let row = lines.row(to.line) ?? 0;
    if (to.y === undefined && text) row = rowWith(lines, row, text.toLowerCase());
    const y = row * height;
    if (to.y !== undefined) el.scrollTop = y - to.y;
    else if (y < el.scrollTop || y + height > el.scrollTop + el.clientHeight) el.scrollTop = y - el.clientHeight / 3;
  });

  const hits = useMemo(() => lines.find(text), [lines, text, lines.version.value, seen.join()]);
  const find = (step: 1 | -1, all = hits, from = at) => {
    const i = step > 0 ? all.findIndex((n) => n > (from ?? -1)) : all.findLastIndex((n) => n < (from ?? Infinity)),
      hit = all.at(i < 0 ? (step > 0 ? 0 : -1) : i);
    if (hit === undefined) return tell(text && "nothing found");
    show(hit);
    tell(`${all.indexOf(hit) + 1} of ${all.length} found`);
  };
  const end = () => {
    setAt(undefined);
    setFollow(true);
    const el = list();
    if (el) el.scrollTop = el.scrollHeight;
  };
  // link puts the marked line, or the first in sight, into the address, and copies that.
  const link = () => {
    const line = at ?? lines.at(Math.ceil((list()?.scrollTop ?? 0) / height));
    if (line === undefined) return;
    go("#L" + (line + 1), { replace: true });
    copy(location.href);
  };
  // move marks the line before or after the marked one.
  const move = (step: 1 | -1) => {
    const row = at === undefined ? undefined : lines.row(at);
    let to = row ?? Math.ceil((list()?.scrollTop ?? 0) / height) - step;
    do to += step;
    while (to >= 0 && to < lines.rows.length && (lines.rows[to]! < 0 || lines.at(to) === at));
    const line = lines.at(to);
    if (line !== undefined) show(line);
  };
  useKeys([
    { keys: "f", does: "follow the end of the log", group: "Logs", run: () => (follow ? setFollow(false) : end()) },
    { keys: "G", does: "to the end of the log", group: "Logs", run: end },
    { keys: "n", does: "next match", group: "Logs", run: () => find(1) },
    { keys: "p", does: "previous match", group: "Logs", run: () => find(-1) },
    { keys: "/", does: "find in the log", group: "Logs", run: () => field.current?.focus() },
    ...(p.wrong
      ? [
          {
            keys: "x",
            does: "next failure",
            group: "Logs",
            run: () => {
              const to = lines.next(p.wrong!, at);
              if (to !== undefined) show(to);
            },
          },
        ]
      : []),
  ]);
  useEffect(() => {
    const on = (e: KeyboardEvent) => {
      if ((e.ctrlKey || e.metaKey) && e.key === "f" && !document.querySelector("dialog[open]")) {
        e.preventDefault();
        field.current?.focus();
        field.current?.select();
      }
    };
    addEventListener("keydown", on);
    return () => removeEventListener("keydown", on);
  }, []);
  useEffect(() => {
    if (!p.tail) return;
    let had: number | undefined;
    const timer = setInterval(() => {
      if (had !== undefined && lines.size > had) tell(many(lines.size - had, "new line"));
      had = lines.size;
    }, 10_000);
    return () => clearInterval(timer);
  }, [lines, p.tail]);
  const picked = useSelection(lines, p.id);
  const failure = p.wrong && lines.next(p.wrong, at),
    lately = lines.since(600_000);

  const place = at === undefined ? -1 : hits.indexOf(at),
    look = (lines.timed ? " timed" : "") + (p.file ? " numbered" : ""),
    last = lineOf(hash) === at ? lastOf(hash) : -1, // of the lines that are marked
    within = (n: number) => at !== undefined && n > at && n <= last;
  return (
    <div class="logbox" ref={box}>
      <div class="tools">
        <input
          ref={field}
          type="search"
          aria-label={p.file ? "Find in the file" : "Find in the log"}
          placeholder="Find  /"
          value={text}
          onInput={(e) => {
            const want = e.currentTarget.value;
            setText(want);
            if (want) find(1, lines.find(want), -1);
          }}
          onKeyDown={(e) => {
            if (e.key === "Enter") {
              e.preventDefault();
              find(e.shiftKey ? -1 : 1);
            }
            if (e.key === "Escape") e.currentTarget.blur();
          }}
        />
        <button type="button" aria-label="Previous match" title="p" disabled={!hits.length} onClick={() => find(-1)}>
          ↑
        </button>
        <button type="button" aria-label="Next match" title="n" disabled={!hits.length} onClick={() => find(1)}>
          ↓
        </button>
        <span class="dim num">
          {!text
            ? many(lines.size, "line")
            : place < 0
              ? hits.length + " found"
              : `${place + 1} of ${hits.length} found`}
          {goal !== undefined && !p.tail && lines.size > 0 && `, there is no line ${goal + 1}`}
        </span>
        {p.wrong && failure !== undefined && (
          <button type="button" class="plain" title="x" onClick={() => show(failure)}>
            Next failure
          </button>
        )}
        {lately !== undefined && (
          <button type="button" class="plain" onClick={() => show(lately)}>
            Last 10 min
          </button>
        )}
        <span class="heard" role="status">
          {told}
        </span>
        <span class="grow" />
        <details class="kinds" hidden={p.file}>
          <summary>Show</summary>
          <div>
            {Object.keys(p.kinds ?? {}).map((k) => (
              <label key={k} class="check">
                <input
                  type="checkbox"
                  checked={seen.includes(k)}
                  onChange={() => {
                    hold();
                    const all = Object.keys(p.kinds!),
                      rest = all.filter((x) => seen.includes(x) !== (x === k));
                    setQuery({ kinds: rest.length === all.length ? "" : rest.join() || "none" });
                  }}
                />
                {k}
              </label>
            ))}
            <label class="check">
              <input
                type="checkbox"
                checked={fold}
                onChange={() => {
                  hold();
                  setFold(!fold);
                  lines.fold(!fold);
                }}
              />
              fold long output
            </label>
          </div>
        </details>
        {p.tail && (
          <button type="button" aria-pressed={follow && held} onClick={end}>
            Follow
          </button>
        )}
        <button type="button" onClick={link}>
          Link to line
        </button>
        <button type="button" onClick={() => copy(lines.text(0, lines.lines.length))}>
          Copy all
        </button>
        {p.children}
      </div>
      <span class="probe" ref={probe} aria-hidden="true">
        00000000000000000000
      </span>
      <span class={"probe gutter" + look} aria-hidden="true" />
      <VList
        id={p.id}
        role="log"
        label={p.label}
        class={"log" + look}
        count={lines.rows.length}
        height={height}
        tail={follow}
        onTail={setHeld}
        onKeyDown={(e) => {
          const key = e.ctrlKey || e.metaKey || e.altKey || !single.value ? "" : e.key;
          if (key !== "j" && key !== "k") return;
          e.preventDefault();
          move(key === "j" ? 1 : -1);
        }}
        row={(i) => {
          const place = lines.rows[i]!;
          if (place < 0) {
            const f = lines.folded(~place);
            return (
              <div key={place} class="l" data-line={f.first}>
                <button
                  type="button"
                  class="fold"
                  aria-expanded={f.open}
                  onClick={() => {
                    hold();
                    lines.unfold(~place, !f.open);
                  }}
                >
                  {f.open ? "Fold " : "Unfold "}
                  {many(f.lines, "line")}
                </button>
              </div>
            );
          }
          const l = lines.lines[place]!;
          return (
            <div
              key={place}
              data-line={place}
              class={"l " + l.kind + (l.n === at || within(l.n) ? " on" : "") + (picked(place) ? " picked" : "")}
            >
              {lines.timed && <At t={lines.told(place)} />}
              {lines.lines[place - 1]?.n !== l.n && (
                <a
                  class="n"
                  tabIndex={-1}
                  href={"#L" + (l.n + 1)}
                  onClick={(e) => {
                    e.preventDefault();
                    go("#L" + (l.n + 1), { replace: true });
                    setAt(l.n);
                  }}
                >
                  {l.n + 1}
                </a>
              )}
              <span class="t">{l.kind === "fate" ? <Fate text={l.text} /> : <Pieces text={l.text} />}</span>
            </div>
          );
        }}
      />
    </div>
  );
}

// At is when a line came, in the margin.
function At(p: { t: number | undefined }) {
  if (p.t === undefined) return null;
  const at = new Date(p.t);
  return (
    <time class="at" dateTime={at.toISOString()} title={at.toLocaleString()}>
      {at.toTimeString().slice(0, 8)}
    </time>
  );
}

function Pieces(p: { text: string }) {
  return (
    <>
      {spans(p.text).map((s, k) =>
        s.class ? (
          <span key={k} class={s.class}>
            {s.text}
          </span>
        ) : (
          s.text
        ),
      )}
    </>
  );
}

// Fate is a line that begins with a state.
function Fate(p: { text: string }) {
  const colon = p.text.indexOf(":");
  return (
    <>
      <Status of={p.text.slice(0, colon)} />
      <Pieces text={p.text.slice(colon)} />
    </>
  );
}

// rowWith is the row of a wrapped line that a text stands in; the line's first where no row has all of it.
function rowWith(lines: Lines, first: number, text: string): number {
  const line = lines.at(first);
  for (let row = first; lines.at(row) === line && row < lines.rows.length; row++)
    if (lines.lines[lines.rows[row]!]?.text.toLowerCase().includes(text)) return row;
  return first;
}

// lineOf is the line that an address names, such as #L120, or the first of some, such as #L12-L20.
const named = /^#L([1-9]\d{0,8})(?:-L([1-9]\d{0,8}))?$/;
function lineOf(hash: string): number | undefined {
  const m = named.exec(hash);
  return m ? Number(m[1]) - 1 : undefined;
}

// lastOf is the last of the lines that an address names.
const lastOf = (hash: string) => Number(named.exec(hash)?.[2] ?? 0) - 1;

// kindsOf are the names of the kinds that the address has chosen.
function kindsOf(all: Record<string, string[]> | undefined): string[] {
  const chosen = query().get("kinds");
  return Object.keys(all ?? {}).filter((k) => !chosen || chosen.split(",").includes(k));
}

const hiddenBy = (all: Record<string, string[]>, seen: string[]) =>
  Object.entries(all).flatMap(([k, kinds]) => (seen.includes(k) ? [] : kinds));
