// What is selected in a log of which only a part is drawn. The browser forgets letters
// that leave the document, so where a selection begins and ends is kept here.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Lines, Point } from "./lines";

// pointOf is the letter at a place of the document, if that is in a row.
function pointOf(node: Node | null, offset: number): Point | undefined {
  const el = node instanceof Element ? node : node?.parentElement,
    row = el?.closest<HTMLElement>("[data-line]"),
    text = row?.querySelector(".t");
  if (!row) return;
  const point = { line: Number(row.dataset["line"]), at: 0 };
  if (text && node && (text.contains(node) || node.contains(text))) {
    const before = document.createRange();
    before.selectNodeContents(text);
    if (text.contains(node)) before.setEnd(node, offset);
    else if (!offset) before.collapse(true);
    point.at = before.toString().length;
  }
  return point;
}

// useSelection has what is copied be all that was selected in the list of an id. It returns
// which lines are selected as a whole.
export function useSelection(lines: Lines, id: string): (line: number) => boolean {
  const pick = useRef<{ from: Point; to: Point } | undefined>(undefined),
    [[a, b], mark] = useState<[number, number]>([0, -1]);
  const ends = () => {
    const p = pick.current;
    if (!p) return;
    const back = p.to.line < p.from.line || (p.to.line === p.from.line && p.to.at < p.from.at);
    return back ? { from: p.to, to: p.from } : p;
  };
  const set = (p: { from: Point; to: Point } | undefined) => {
    pick.current = p;
    const e = ends();
    mark(e && e.to.line > e.from.line ? [e.from.line + 1, e.to.line - 1] : [0, -1]);
  };
  useEffect(() => {
    set(undefined);
    const list = () => document.getElementById(id)!;
    const see = () => {
      const s = getSelection();
      if (!s || !list().contains(s.anchorNode)) return set(undefined);
      const from = pointOf(s.anchorNode, s.anchorOffset) ?? pick.current?.from;
      if (s.isCollapsed && pointOf(s.anchorNode, 0)) return set(undefined);
      const to = pointOf(s.focusNode, s.focusOffset) ?? pick.current?.to;
      set(from && to && { from, to });
    };
    const copies = (e: ClipboardEvent) => {
      const p = ends();
      if (!p || p.from.line === p.to.line || !e.clipboardData) return;
      e.clipboardData.setData("text/plain", lines.between(p.from, p.to));
      e.preventDefault();
    };
    const all = (e: KeyboardEvent) => {
      if (!(e.ctrlKey || e.metaKey) || e.key !== "a" || !list().contains(document.activeElement)) return;
      e.preventDefault();
      getSelection()?.selectAllChildren(list());
      set({ from: { line: 0, at: 0 }, to: { line: lines.lines.length - 1, at: Infinity } });
    };
    document.addEventListener("selectionchange", see);
    document.addEventListener("copy", copies);
    document.addEventListener("keydown", all);
    return () => {
      document.removeEventListener("selectionchange", see);
      document.removeEventListener("copy", copies);
      document.removeEventListener("keydown", all);
    };
  }, [lines, id]);
  return (line) => line >= a && line <= b;
}
