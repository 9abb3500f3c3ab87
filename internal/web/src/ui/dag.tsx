// Dag draws what waits for what: in layers from left to right, solid edges for what
// needs the other's code, dashed ones for order only. Arrow keys walk it. Only what is on
// screen is in the document.
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

export type Node = { id: string; up: { id: string; kind: "code" | "order" }[] };

const wide = 220,
  high = 72,
  across = 64,
  down = 16,
  beyond = 400; // pixels around what is seen that are drawn, too

// layout gives each node its layer and its place in it. A node is in the layer after the
// last one that it waits for; in a layer, nodes are near those that they wait for.
export function layout(nodes: Node[]): Map<string, { x: number; y: number }> {
  const by = new Map(nodes.map((n) => [n.id, n])),
    layer = new Map<string, number>(),
    busy = new Set<string>();
  const depth = (n: Node): number => {
    const had = layer.get(n.id);
    if (had !== undefined || busy.has(n.id)) return had ?? 0; // a circle ends here
    busy.add(n.id);
    const d = n.up.reduce((m, u) => {
      const x = by.get(u.id);
      return x && x !== n ? Math.max(m, depth(x) + 1) : m;
    }, 0);
    busy.delete(n.id);
    layer.set(n.id, d);
    return d;
  };
  nodes.forEach(depth);
  const layers: Node[][] = [];
  for (const n of nodes) (layers[layer.get(n.id)!] ??= []).push(n);
  const at = new Map<string, { x: number; y: number }>();
  for (let x = 0; x < layers.length; x++) {
    const own = layers[x] ?? [];
    const want = new Map(
      own.map((n) => {
        const ys = n.up.flatMap((u) => at.get(u.id)?.y ?? []);
        return [n.id, ys.length ? ys.reduce((a, b) => a + b) / ys.length : Infinity];
      }),
    );
    const sorted = own
      .map((n, i) => ({ n, i }))
      .sort((a, b) => {
        const p = want.get(a.n.id)!,
          q = want.get(b.n.id)!;
        return p === q ? a.i - b.i : p - q;
      });
    for (const [y, { n }] of sorted.entries()) at.set(n.id, { x, y });
  }
  return at;
}

export function Dag(p: {
  nodes: Node[];
  label: string;
  draw: (id: string) => ComponentChildren;
  open: (id: string) => void;
}) {
  const at = useMemo(() => layout(p.nodes), [p.nodes]),
    box = useRef<HTMLDivElement>(null),
    want = useRef(""), // the node that gets the focus once it is drawn
    [on, setOn] = useState(""),
    [view, setView] = useState({ x: 0, y: 0, w: 1600, h: 900 });
  useLayoutEffect(() => {
    const el = box.current!,
      step = beyond / 2,
      near = (n: number) => Math.floor(n / step) * step;
    const see = () => {
      const now = { x: near(el.scrollLeft), y: near(el.scrollTop), w: el.clientWidth, h: el.clientHeight };
      setView((was) => (was.x === now.x && was.y === now.y && was.w === now.w && was.h === now.h ? was : now));
    };
    const size = new ResizeObserver(see);
    size.observe(el);
    el.addEventListener("scroll", see, { passive: true });
    return () => {
      size.disconnect();
      el.removeEventListener("scroll", see);
    };
  }, []);
  useLayoutEffect(() => {
    if (want.current) box.current!.querySelector<HTMLElement>(`[data-node="${CSS.escape(want.current)}"]`)?.focus();
    want.current = "";
  }, [on]);
  const seen = (x1: number, y1: number, x2: number, y2: number) =>
    x2 > view.x - beyond &&
    x1 < view.x + view.w + 1.5 * beyond &&
    y2 > view.y - beyond &&
    y1 < view.y + view.h + 1.5 * beyond;
  const place = (id: string) => {
    const c = at.get(id)!;
    return { x: 16 + c.x * (wide + across), y: 16 + c.y * (high + down) };
  };
  const width = 32 + Math.max(0, ...[...at.values()].map((c) => (c.x + 1) * (wide + across))) - across,
    height = 56 + Math.max(0, ...[...at.values()].map((c) => (c.y + 1) * (high + down))) - down;
  const pick = (id: string | undefined) => {
    if (!id) return;
    want.current = id;
    setOn(id);
  };
  const walk = (e: KeyboardEvent) => {
    // The node that has the focus may not have been drawn as such yet.
    const from = (e.target as Element).closest<HTMLElement>("[data-node]")?.dataset["node"] ?? on,
      now = p.nodes.find((n) => n.id === from) ?? p.nodes[0],
      c = now && at.get(now.id);
    if (!now || !c) return;
    const beside = (x: number, y: number) =>
      p.nodes.find((n) => {
        const d = at.get(n.id)!;
        return d.x === x && d.y === y;
      })?.id;
    const near = (ids: string[]) =>
      ids.filter((id) => at.has(id)).sort((a, b) => Math.abs(at.get(a)!.y - c.y) - Math.abs(at.get(b)!.y - c.y))[0];
    if (!from) pick(now.id);
    else if (e.key === "ArrowUp") pick(beside(c.x, c.y - 1));
    else if (e.key === "ArrowDown") pick(beside(c.x, c.y + 1));
    else if (e.key === "ArrowLeft") pick(near(now.up.map((u) => u.id)));
    else if (e.key === "ArrowRight")
      pick(near(p.nodes.filter((n) => n.up.some((u) => u.id === now.id)).map((n) => n.id)));
    else return;
    e.preventDefault();
  };
  return (
    <div class="dag" ref={box} role="group" aria-label={p.label} onKeyDown={walk}>
      <svg width={width} height={height} aria-hidden="true">
        {p.nodes.flatMap((n) =>
          n.up
            .filter((u) => at.has(u.id))
            .map((u) => {
              const a = place(u.id),
                b = place(n.id),
                x1 = a.x + wide,
                y1 = a.y + high / 2,
                y2 = b.y + high / 2,
                mid = Math.max(24, (b.x - x1) / 2),
                skips = at.get(n.id)!.x - at.get(u.id)!.x - 1,
                low = Math.max(y1, y2) + (skips > 0 ? 58 + 16 * skips : 0);
              if (!seen(Math.min(x1, b.x), Math.min(y1, y2), Math.max(x1, b.x), low)) return null;
              if (skips > 0) {
                return (
                  <path
                    key={u.id + n.id}
                    class={(u.kind === "order" ? "order" : "") + (on === n.id || on === u.id ? " lit" : "")}
                    d={`M${x1} ${y1}C${x1 + 40} ${low} ${b.x - 40} ${low} ${b.x} ${y2}`}
                  />
                );
              } // below what lies between
              return (
                <path
                  key={u.id + n.id}
                  class={(u.kind === "order" ? "order" : "") + (on === n.id || on === u.id ? " lit" : "")}
                  d={`M${x1} ${y1}C${x1 + mid} ${y1} ${b.x - mid} ${y2} ${b.x} ${y2}`}
                />
              );
            }),
        )}
      </svg>
      {p.nodes.map((n, i) => {
        const c = place(n.id),
          stop = on ? on === n.id : !i; // where Tab leads
        if (!stop && !seen(c.x, c.y, c.x + wide, c.y + high)) return null;
        return (
          <button
            key={n.id}
            type="button"
            data-node={n.id}
            class={"node" + (on === n.id ? " on" : "")}
            tabIndex={stop ? 0 : -1}
            onFocus={() => setOn(n.id)}
            onClick={() => p.open(n.id)}
            style={{ left: `${c.x}px`, top: `${c.y}px`, width: `${wide}px`, height: `${high}px` }}
          >
            {p.draw(n.id)}
          </button>
        );
      })}
    </div>
  );
}
