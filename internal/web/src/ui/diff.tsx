// Diff draws what a change does to files: a tree with counts, and the lines of each
// file, which are asked for when it is open and comes on screen. Only what is on screen is
// drawn.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { said } from "../api";
import { go, here } from "../route";
import { inert } from "./ansi";
import { useKeys } from "./keys";
import { Counts } from "./parts";
import { about, folds, rows, type Change, type Lines, type Note, type Row, type Side } from "./patch";
import { fileAt, hashOf, rowOf, spotOf, type Spot } from "./spot";
import { VList } from "./vlist";

type Props = {
  files: Change[];
  more: number;
  load: (path: string, off: AbortSignal) => Promise<Lines | null>;
  notes: Note[];
  keep: string; // under which the viewed files are kept in the browser
};

const height = 20,
  atFirst = 8; // files that are opened without being asked for

// viewed reads and writes which files were looked at.
function recall(keep: string): Set<string> {
  try {
    return new Set(JSON.parse(localStorage.getItem("viewed:" + keep) ?? "[]") as string[]);
  } catch {
    return new Set();
  }
}
function remember(keep: string, all: Set<string>) {
  const object = "viewed:" + keep.split(":")[0] + ":";
  try {
    for (const k of Object.keys(localStorage))
      if (k.startsWith(object) && k !== "viewed:" + keep) localStorage.removeItem(k);
    localStorage.setItem("viewed:" + keep, JSON.stringify([...all].slice(0, 3000)));
  } catch {
    /* the browser keeps nothing */
  }
}

export function Diff(p: Props) {
  const [open, setOpen] = useState(() => {
    const seen = recall(p.keep);
    return new Set(
      p.files
        .filter((f) => !f.binary && !folds(f) && !seen.has(f.path))
        .slice(0, atFirst)
        .map((f) => f.path),
    );
  });
  const [got, setGot] = useState<ReadonlyMap<string, Lines | string>>(new Map()),
    [seen, setSeen] = useState(() => recall(p.keep));
  const [size, setSize] = useState({ cols: 100, split: false }),
    [spot, setSpot] = useState<Spot | undefined>(), // what is marked
    [wish, setWish] = useState<"" | "one" | "two">("");
  const box = useRef<HTMLDivElement>(null),
    probe = useRef<HTMLSpanElement>(null),
    asked = useRef(new Set<string>()),
    shown = useRef<Spot | undefined>(undefined), // the spot that was last brought into sight
    holds = useRef(false), // whether it stays where it is on screen, whatever comes above it
    told = useRef(""), // the part of the address that was last read or written here
    off = useRef(new AbortController());
  useEffect(() => () => off.current.abort(), []);
  useEffect(() => {
    const see = () => {
      if (!probe.current || !box.current) return;
      const one = probe.current.getBoundingClientRect().width / 20,
        wide = box.current.clientWidth;
      const split = wish ? wish === "two" && wide > 600 : innerWidth >= 1200 && wide > 800;
      if (one > 0)
        setSize({
          split,
          cols: Math.max(16, Math.floor((split ? wide / 2 - 70 : wide - (wide > 600 ? 120 : 72)) / one) - 2),
        });
    };
    const watch = new ResizeObserver(see);
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, [wish]);
  const ask = (path: string) => {
    if (asked.current.has(path)) return;
    asked.current.add(path);
    p.load(path, off.current.signal).then(
      (l) => setGot((g) => new Map(g).set(path, l ?? { hunks: [], cut: false })),
      (e) => {
        if (!off.current.signal.aborted) setGot((g) => new Map(g).set(path, said(e)));
      },
    );
  };
  const made = useMemo(() => new Map<string, Row[]>(), [size, p.notes]);
  const all = useMemo(() => {
    const out: Row[] = [];
    for (const f of p.files) {
      out.push({ t: "file", file: f, at: out.length }, { t: "gap" });
      if (!open.has(f.path)) continue;
      const l = got.get(f.path);
      if (f.binary) out.push({ t: "say", text: "A binary file." });
      else if (typeof l === "string") out.push({ t: "say", text: l, kind: "bad" });
      else if (!l) out.push({ t: "say", text: "Loading…", path: f.path });
      else {
        let own = made.get(f.path);
        if (!own) made.set(f.path, (own = rows(f.path, l, p.notes, size.split, size.cols)));
        for (const r of own) out.push(r);
      }
      out.push({ t: "gap" });
    }
    if (p.more) out.push({ t: "say", text: `${p.more} more files are not listed here.` });
    return out;
  }, [p.files, open, got, made, p.more]);
  const starts = useMemo(() => all.flatMap((r, i) => (r.t === "file" ? [i] : [])), [all]);
  const toggle = (path: string, to = !open.has(path)) => {
    if (to && !open.has(path) && typeof got.get(path) === "string") {
      asked.current.delete(path); // it failed, and is asked for again
      setGot((g) => {
        const rest = new Map(g);
        rest.delete(path);
        return rest;
      });
    }
    setOpen((o) => {
      const n = new Set(o);
      if (to) n.add(path);
      else n.delete(path);
      return n;
    });
  };
  const active = useMemo(() => spot && rowOf(all, spot)?.row, [all, spot]);
  // show opens the file of a spot, marks the spot and brings it into sight.
  const show = (s: Spot) => {
    toggle(s.path, true);
    if (s.line) ask(s.path);
    holds.current = true;
    setSpot(s);
  };
  const lead = (s: Spot) => {
    show(s);
    told.current = hashOf(s);
    try {
      go(told.current, { replace: true });
    } catch {
      /* a browser lets the address change only so often */
    }
  };
  const hash = here.value.hash;
  useLayoutEffect(() => {
    if (hash === told.current) return;
    told.current = hash;
    const s = spotOf(hash, p.files);
    if (s) show(s);
  }, [hash]);
  const was = useRef({ all, starts });
  useLayoutEffect(() => {
    const el = document.getElementById("diff"),
      old = was.current;
    was.current = { all, starts };
    if (!el) return;
    const top = el.scrollTop / height,
      end = top + el.clientHeight / height;
    if (spot && shown.current !== spot) {
      const to = rowOf(all, spot);
      if (!to?.waits) shown.current = spot;
      if (!to) return;
      if (!to.line) el.scrollTop = to.row * height;
      else if (to.row < top || to.row + 1 > end) el.scrollTop = to.row * height - el.clientHeight / 3;
      return;
    }
    if (old.all === all) return;
    // Lines that come above what is read do not move it.
    let from = spot && holds.current ? rowOf(old.all, spot)?.row : undefined,
      to = spot && rowOf(all, spot)?.row;
    if (from === undefined || to === undefined || from < top || from >= end) {
      const f = fileAt(old.starts, Math.floor(top)),
        rest = top - (old.starts[f] ?? 0),
        first = starts[f] ?? 0;
      from = top;
      to = first + (first + rest < (starts[f + 1] ?? all.length) ? rest : 0);
    }
    if (to !== from) el.scrollTop = (top + to - from) * height;
  }, [all, spot]);
  const now = () => {
    // the file of what is marked, if that is seen, and else the one at the top of what is
    const el = document.getElementById("diff"),
      top = Math.floor((el?.scrollTop ?? 0) / height),
      seen = active !== undefined && active >= top && active < top + (el?.clientHeight ?? 0) / height;
    return fileAt(starts, seen ? active : top);
  };
  const step = (by: 1 | -1) => {
    const at = !spot && by > 0 ? 0 : Math.min(starts.length - 1, Math.max(0, now() + by)),
      row = all[starts[at] ?? -1];
    if (row?.t === "file") lead({ path: row.file.path });
  };
  const fold = (path: string, to?: boolean) => {
    holds.current = false;
    toggle(path, to);
  };
  const view = (path: string, to = !seen.has(path)) => {
    const n = new Set(seen);
    if (to) n.add(path);
    else n.delete(path);
    setSeen(n);
    remember(p.keep, n);
    if (to) fold(path, false);
  };
  useKeys([
    { keys: "n", does: "next file", group: "Changes", run: () => step(1) },
    { keys: "p", does: "previous file", group: "Changes", run: () => step(-1) },
    {
      keys: "v",
      does: "viewed, or not",
      group: "Changes",
      run: () => {
        const r = all[starts[now()] ?? -1];
        if (r?.t === "file") {
          view(r.file.path);
          setSpot((shown.current = { path: r.file.path }));
        }
      },
    },
    {
      keys: "o",
      does: "open or fold the file",
      group: "Changes",
      run: () => {
        const r = all[starts[now()] ?? -1];
        if (r?.t === "file") fold(r.file.path);
      },
    },
  ]);
  const count = p.files.filter((f) => seen.has(f.path)).length;
  return (
    <div class="diffbox">
      <Tree files={p.files} seen={seen} at={spot?.path ?? ""} show={(path) => lead({ path })} count={count} />
      <div class="diffmain" ref={box}>
        <div class="tools">
          <button
            type="button"
            onClick={() => {
              holds.current = false;
              setOpen(new Set(open.size ? [] : p.files.filter((f) => !f.binary).map((f) => f.path)));
            }}
          >
            {open.size ? "Fold all" : "Open all"}
          </button>
          <button
            type="button"
            class="wide"
            aria-pressed={size.split}
            onClick={() => setWish(size.split ? "one" : "two")}
          >
            Side by side
          </button>
          <span class="dim num" role="status">
            {count} of {p.files.length} viewed
          </span>
        </div>
        <span class="probe" ref={probe} aria-hidden="true">
          00000000000000000000
        </span>
        <VList
          id="diff"
          label="Changed lines"
          class="log changes"
          role="region"
          count={all.length}
          height={height}
          row={(i) => (
            <Draw
              key={i}
              row={all[i]!}
              of={all[starts[fileAt(starts, i)]!] as Row & { t: "file" }}
              lead={lead}
              open={open}
              seen={seen}
              toggle={fold}
              view={view}
              ask={ask}
              on={i === active ? (spot?.old ? "old" : "new") : ""}
            />
          )}
        />
      </div>
    </div>
  );
}

function Draw(p: {
  row: Row;
  of: Row & { t: "file" }; // that it belongs to
  lead: (s: Spot) => void;
  open: Set<string>;
  seen: Set<string>;
  on: "" | "old" | "new"; // the side that is marked
  toggle: (path: string) => void;
  view: (path: string) => void;
  ask: (path: string) => void;
}) {
  const r = p.row,
    lacks = r.t === "say" ? r.path : undefined,
    on = p.on ? " on" : "";
  // The number of a line of the new side leads to it, as does that of one that was removed.
  const number = (n: number | null, old = false) => {
    if (!n) return null;
    const s = { path: p.of.file.path, line: n, old };
    return (
      <a
        tabIndex={-1}
        href={hashOf(s)}
        aria-current={p.on === (old ? "old" : "new") ? "location" : undefined}
        onClick={(e) => {
          if (e.ctrlKey || e.metaKey || e.shiftKey) return;
          e.preventDefault();
          p.lead(s);
        }}
      >
        {n}
      </a>
    );
  };
  useEffect(() => {
    if (lacks !== undefined) p.ask(lacks);
  }, [lacks]);
  switch (r.t) {
    case "file": {
      const f = r.file,
        is = p.open.has(f.path),
        why = is ? "" : folds(f),
        of = about(f);
      return (
        <div class="l fileline">
          <div class={p.on ? "on" : undefined}>
            <button type="button" class="plain" aria-expanded={is} onClick={() => p.toggle(f.path)}>
              <span aria-hidden="true">{is ? "▾" : "▸"}</span>
              <b>{inert(f.path)}</b>
            </button>
            <small>
              {of}
              {why && of !== why && (of ? ", " : "") + why}
            </small>
            <span class="grow" />
            <Counts of={f} />
            <label>
              <input type="checkbox" checked={p.seen.has(f.path)} onChange={() => p.view(f.path)} /> viewed
            </label>
          </div>
        </div>
      );
    }
    case "gap":
      return <div class="l" />;
    case "say":
      return <div class={"l say2 " + (r.kind ?? "")}>{r.text}</div>;
    case "note":
      return (
        <div class="l remark">
          <a href={r.href}>{r.text}</a>
        </div>
      );
    case "one":
      return (
        <div class={"dl " + r.side.kind + on}>
          <i>{r.new ? r.old : number(r.old, true)}</i>
          <i>{number(r.new)}</i>
          <Text of={r.side} />
        </div>
      );
    case "two":
      return (
        <div class={"dl two" + on}>
          <Half of={r.left}>{r.left?.kind === "del" ? number(r.left.n, true) : r.left?.n}</Half>
          <Half of={r.right}>{number(r.right?.n ?? null)}</Half>
        </div>
      );
  }
}

function Half(p: { of: Side | null; children: ComponentChildren }) {
  return p.of ? (
    <div class={p.of.kind}>
      <i>{p.children}</i>
      <Text of={p.of} />
    </div>
  ) : (
    <div class="none" />
  );
}

function Text(p: { of: Side }) {
  const { text, sign } = p.of,
    out: ComponentChildren[] = [];
  let at = 0;
  for (const [a, b] of p.of.marks()) {
    out.push(text.slice(at, a), <u key={a}>{text.slice(a, b)}</u>);
    at = b;
  }
  out.push(text.slice(at));
  return (
    <>
      <span class="sign">{sign}</span>
      <span class="tx">{out}</span>
    </>
  );
}

function Tree(p: { files: Change[]; seen: Set<string>; at: string; show: (path: string) => void; count: number }) {
  const all = useMemo(() => {
    const out: ({ dir: string } | Change)[] = [];
    let last = "";
    for (const f of p.files) {
      const dir = f.path.includes("/") ? f.path.slice(0, f.path.lastIndexOf("/")) : "";
      if (dir !== last) {
        out.push({ dir: dir || "/" });
        last = dir;
      }
      out.push(f);
    }
    return out;
  }, [p.files]);
  const row = (i: number) => {
    const f = all[i]!;
    return "dir" in f ? (
      <div key={i} class="dir">
        {inert(f.dir)}/
      </div>
    ) : (
      <button
        key={i}
        type="button"
        class="plain leaf"
        aria-current={p.at === f.path ? "true" : undefined}
        onClick={() => p.show(f.path)}
      >
        <span class={p.seen.has(f.path) ? "dim" : undefined}>
          {p.seen.has(f.path) && <span title="viewed">✓ </span>}
          {inert(f.path.slice(f.path.lastIndexOf("/") + 1))}
        </span>
        <Counts of={f} />
      </button>
    );
  };
  return (
    <nav class="tree" aria-label="Changed files" style={{ "--rows": String(all.length) }}>
      <VList id="tree" label="Changed files" role="region" count={all.length} height={28} row={row} />
    </nav>
  );
}
