// A list of which only what is on screen is in the document. Rows have one height, so
// the scroll bar is exact and nothing is measured.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";

type Props = {
  count: number;
  height: number;
  label: string;
  id: string;
  role?: "grid" | "log" | "region";
  class?: string;
  tail?: boolean;
  active?: number;
  start?: number; // how far it is scrolled at first
  seek?: boolean; // whether the marked row is brought into sight at first
  row: (i: number) => ComponentChildren;
  onKeyDown?: (e: KeyboardEvent) => void;
  onEnd?: () => void;
  onTop?: (at: boolean) => void;
  onScroll?: (top: number) => void;
  onTail?: (at: boolean) => void;
};

const beyond = 8; // rows drawn above and below what is seen

export function VList(p: Props) {
  const box = useRef<HTMLDivElement>(null),
    stuck = useRef(true),
    last = useRef(p);
  last.current = p;
  const [view, set] = useState({ top: p.start ?? 0, high: 800 });
  useLayoutEffect(() => {
    const el = box.current!;
    if (p.start) el.scrollTop = p.start;
    let was = el.scrollTop;
    const see = () => {
      // going up lets go of the end, reaching it takes hold again; growth does neither
      const now = last.current,
        held = stuck.current;
      if (el.scrollTop < was - 1) stuck.current = false;
      if (el.scrollTop + el.clientHeight >= el.scrollHeight - 2) stuck.current = true;
      if (held !== stuck.current) now.onTail?.(stuck.current);
      was = el.scrollTop;
      set({ top: el.scrollTop, high: el.clientHeight });
      now.onScroll?.(el.scrollTop);
      now.onTop?.(el.scrollTop < now.height);
      if (el.scrollTop + el.clientHeight > el.scrollHeight - 20 * now.height) now.onEnd?.();
    };
    const size = new ResizeObserver(() => {
      if (last.current.tail && stuck.current) el.scrollTop = el.scrollHeight;
      see();
    });
    size.observe(el);
    el.addEventListener("scroll", see, { passive: true });
    return () => {
      size.disconnect();
      el.removeEventListener("scroll", see);
    };
  }, []);
  useLayoutEffect(() => {
    if (p.tail && stuck.current) box.current!.scrollTop = box.current!.scrollHeight;
  }, [p.count, p.tail]);
  const begun = useRef(!p.start || p.seek);
  useLayoutEffect(() => {
    const at = begun.current;
    begun.current = true;
    if (p.active === undefined || !at) return; // what was in sight, the marked row or not, is again
    const el = box.current!,
      y = p.active * p.height;
    if (y < el.scrollTop) el.scrollTop = y;
    else if (y + p.height > el.scrollTop + el.clientHeight) el.scrollTop = y + p.height - el.clientHeight;
  }, [p.active]);
  const from = Math.max(0, Math.floor(view.top / p.height) - beyond),
    to = Math.min(p.count, Math.ceil((view.top + view.high) / p.height) + beyond);
  const out: ComponentChildren[] = [];
  for (let i = from; i < to; i++) out.push(p.row(i));
  const grid = p.role === "grid";
  // The style attribute is set through the CSSOM, which a strict policy allows.
  return (
    <div
      ref={box}
      id={p.id}
      class={"vlist " + (p.class ?? "")}
      tabIndex={0}
      role={p.role}
      aria-label={p.label}
      aria-live={p.role === "log" ? "off" : undefined}
      aria-rowcount={grid ? p.count : undefined}
      aria-activedescendant={grid && p.active !== undefined && p.count ? p.id + p.active : undefined}
      style={grid ? { flex: `0 1 ${p.count * p.height}px` } : undefined}
      onKeyDown={p.onKeyDown}
    >
      <div role={grid ? "rowgroup" : undefined} style={{ height: `${p.count * p.height}px` }}>
        <div role={grid ? "presentation" : undefined} style={{ transform: `translateY(${from * p.height}px)` }}>
          {out}
        </div>
      </div>
    </div>
  );
}
