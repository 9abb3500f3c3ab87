// Diff draws what a change does to files: a tree with counts, and the lines of each
// file, which are asked for when it is opened. Only what is on screen is drawn.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { said } from "../api";
import { inert } from "./ansi";
import { useKeys } from "./keys";
import { Counts } from "./parts";
import { about, folds, rows, type Change, type Lines, type Note, type Row, type Side } from "./patch";
import { VList } from "./vlist";

type Props = {
  files: Change[]; more: number; load: (path: string, off: AbortSignal) => Promise<Lines | null>; notes: Note[];
  keep: string; // under which the viewed files are kept in the browser
};

const height = 20, atFirst = 8; // files that are opened without being asked for

// viewed reads and writes which files were looked at.
function recall(keep: string): Set<string> {
  try { return new Set(JSON.parse(localStorage.getItem("viewed:" + keep) ?? "[]") as string[]); } catch { return new Set(); }
}
function remember(keep: string, all: Set<string>) {
  const object = "viewed:" + keep.split(":")[0] + ":";
  try {
    for (const k of Object.keys(localStorage)) if (k.startsWith(object) && k !== "viewed:" + keep) localStorage.removeItem(k);
    localStorage.setItem("viewed:" + keep, JSON.stringify([...all].slice(0, 3000)));
  } catch { /* the browser keeps nothing */ }
}

export function Diff(p: Props) {
  const [open, setOpen] = useState(() => {
    const seen = recall(p.keep);
    return new Set(p.files.filter((f) => !f.binary && !folds(f) && !seen.has(f.path)).slice(0, atFirst).map((f) => f.path));
  });
  const [got, setGot] = useState<Record<string, Lines | string>>({}), [seen, setSeen] = useState(() => recall(p.keep));
  const [size, setSize] = useState({ cols: 100, split: false }), [active, setActive] = useState<number | undefined>(), [wish, setWish] = useState<"" | "one" | "two">("");
  const box = useRef<HTMLDivElement>(null), probe = useRef<HTMLSpanElement>(null), asked = useRef(new Set<string>()), off = useRef(new AbortController());
  useEffect(() => () => off.current.abort(), []);
  useEffect(() => {
    const see = () => {
      if (!probe.current || !box.current) return;
      const one = probe.current.getBoundingClientRect().width / 20, wide = box.current.clientWidth;
      const split = wish ? wish === "two" && wide > 600 : innerWidth >= 1200 && wide > 800;
      if (one > 0) setSize({ split, cols: Math.max(16, Math.floor((split ? wide / 2 - 70 : wide - (wide > 600 ? 120 : 72)) / one) - 2) });
    };
    const watch = new ResizeObserver(see);
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, [wish]);
  useEffect(() => {
    for (const path of open) {
      if (asked.current.has(path)) continue;
      asked.current.add(path);
      p.load(path, off.current.signal).then((l) => setGot((g) => ({ ...g, [path]: l ?? { hunks: [], cut: false } })),
        (e) => { if (!off.current.signal.aborted) { asked.current.delete(path); setGot((g) => ({ ...g, [path]: said(e) })); } });
    }
  }, [open]);
  const made = useMemo(() => new Map<string, Row[]>(), [size, p.notes]);
  const all = useMemo(() => {
    const out: Row[] = [];
    for (const f of p.files) {
      out.push({ t: "file", file: f, at: out.length }, { t: "gap" });
      if (!open.has(f.path)) continue;
      const l = got[f.path];
      if (f.binary) out.push({ t: "say", text: "A binary file." });
      else if (typeof l === "string") out.push({ t: "say", text: l, kind: "bad" });
      else if (!l) out.push({ t: "say", text: "Loading…" });
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
  const starts = useMemo(() => all.flatMap((r, i) => r.t === "file" ? [i] : []), [all]);
  const toggle = (path: string, to = !open.has(path)) => setOpen((o) => { const n = new Set(o); if (to) n.add(path); else n.delete(path); return n; });
  const show = (path: string) => {
    toggle(path, true);
    const i = all.findIndex((r) => r.t === "file" && r.file.path === path), el = document.getElementById("diff");
    if (i < 0 || !el) return;
    setActive(i);
    el.scrollTop = i * height;
  };
  const now = () => { // the file that is at the top of what is seen
    const top = Math.floor((document.getElementById("diff")?.scrollTop ?? 0) / height), before = starts.filter((s) => s <= top);
    return active !== undefined && all[active]?.t === "file" && active >= top ? starts.indexOf(active) : Math.max(0, before.length - 1);
  };
  const step = (by: 1 | -1) => {
    const at = active === undefined && by > 0 ? 0 : Math.min(starts.length - 1, Math.max(0, now() + by)), row = all[starts[at] ?? -1];
    if (row?.t === "file") show(row.file.path);
  };
  const view = (path: string, to = !seen.has(path)) => {
    const n = new Set(seen);
    if (to) n.add(path); else n.delete(path);
    setSeen(n);
    remember(p.keep, n);
    if (to) toggle(path, false);
  };
  useKeys([{ keys: "n", does: "next file", group: "Changes", run: () => step(1) }, { keys: "p", does: "previous file", group: "Changes", run: () => step(-1) },
    { keys: "v", does: "viewed, or not", group: "Changes", run: () => { const r = all[starts[now()] ?? -1]; if (r?.t === "file") { view(r.file.path); setActive(starts[now()]); } } },
    { keys: "o", does: "open or fold the file", group: "Changes", run: () => { const r = all[starts[now()] ?? -1]; if (r?.t === "file") toggle(r.file.path); } }]);
  const count = p.files.filter((f) => seen.has(f.path)).length;
  return <div class="diffbox">
    <Tree files={p.files} seen={seen} at={active !== undefined && all[active]?.t === "file" ? (all[active] as { file: Change }).file.path : ""} show={show} count={count} />
    <div class="diffmain" ref={box}>
      <div class="bar"><button type="button" onClick={() => setOpen(new Set(open.size ? [] : p.files.filter((f) => !f.binary).map((f) => f.path)))}>{open.size ? "Fold all" : "Open all"}</button>
        <button type="button" class="wide" aria-pressed={size.split} onClick={() => setWish(size.split ? "one" : "two")}>Side by side</button>
        <span class="dim num" role="status">{count} of {p.files.length} viewed</span></div>
      <span class="probe" ref={probe} aria-hidden="true">00000000000000000000</span>
      <VList id="diff" label="Changed lines" class="log diff" role="region" count={all.length} height={height} active={active}
        row={(i) => <Draw key={i} i={i} row={all[i]!} open={open} seen={seen} toggle={toggle} view={view} on={i === active} />} /></div></div>;
}

function Draw(p: { i: number; row: Row; open: Set<string>; seen: Set<string>; on: boolean; toggle: (path: string) => void; view: (path: string) => void }) {
  const r = p.row;
  switch (r.t) {
    case "file": {
      const f = r.file, is = p.open.has(f.path), why = is ? "" : folds(f), of = about(f);
      return <div class="l fileline"><div class={p.on ? "on" : undefined}>
        <button type="button" class="plain" aria-expanded={is} onClick={() => p.toggle(f.path)}><span aria-hidden="true">{is ? "▾" : "▸"}</span><b>{inert(f.path)}</b></button>
        <small>{of}{why && of !== why && (of ? ", " : "") + why}</small><span class="grow" /><Counts of={f} />
        <label><input type="checkbox" checked={p.seen.has(f.path)} onChange={() => p.view(f.path)} /> viewed</label></div></div>;
    }
    case "gap": return <div class="l" />;
    case "say": return <div class={"l say2 " + (r.kind ?? "")}>{r.text}</div>;
    case "note": return <div class="l note"><a href={r.href}>{r.text}</a></div>;
    case "one": return <div class={"dl " + r.side.kind}><i>{r.old}</i><i>{r.new}</i><Text of={r.side} /></div>;
    case "two": return <div class="dl two"><Half of={r.left} /><Half of={r.right} /></div>;
  }
}

function Half(p: { of: Side | null }) {
  return p.of ? <div class={p.of.kind}><i>{p.of.n}</i><Text of={p.of} /></div> : <div class="none" />;
}

function Text(p: { of: Side }) {
  const { text, marks, sign } = p.of, out: ComponentChildren[] = [];
  let at = 0;
  for (const [a, b] of marks) {
    out.push(text.slice(at, a), <u key={a}>{text.slice(a, b)}</u>);
    at = b;
  }
  out.push(text.slice(at));
  return <><span class="sign">{sign}</span><span class="tx">{out}</span></>;
}

function Tree(p: { files: Change[]; seen: Set<string>; at: string; show: (path: string) => void; count: number }) {
  const all = useMemo(() => {
    const out: ({ dir: string } | Change)[] = [];
    let last = "";
    for (const f of p.files) {
      const dir = f.path.includes("/") ? f.path.slice(0, f.path.lastIndexOf("/")) : "";
      if (dir !== last) { out.push({ dir: dir || "/" }); last = dir; }
      out.push(f);
    }
    return out;
  }, [p.files]);
  const row = (i: number) => {
    const f = all[i]!;
    return "dir" in f ? <div key={i} class="dir">{inert(f.dir)}/</div> : <button key={i} type="button" class="plain leaf" aria-current={p.at === f.path ? "true" : undefined} onClick={() => p.show(f.path)}>
      <span class={p.seen.has(f.path) ? "dim" : undefined}>{p.seen.has(f.path) && <span title="viewed">✓ </span>}{inert(f.path.slice(f.path.lastIndexOf("/") + 1))}</span><Counts of={f} /></button>;
  };
  return <nav class="tree" aria-label="Changed files"><VList id="tree" label="Changed files" role="region" count={all.length} height={28} row={row} /></nav>;
}
