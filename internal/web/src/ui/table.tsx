// Table is a list page's grid: rows of one height, moved through with keys, opened with
// Enter, chosen with x where something can be done with many, more of them as one scrolls.
import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { density } from "../look";
import { go, here, visit } from "../route";
import type { List } from "../list";
import { fit, type Fit } from "./columns";
import { useKeys, type Binding } from "./keys";
import { keep, move, placeOf, type Place } from "./place";
import { remember } from "./trail";
import { fits, Pane, paneWidth, shown, turn } from "./pane";
import { Loading, Trouble } from "./parts";
import { VList } from "./vlist";
import { table } from "../own";

// A column whose class has "less" leaves where there is too little room, the one of the
// lowest rank first.
export type Column<R> = {
  name: string;
  class?: string;
  wide?: boolean;
  rank?: number;
  cell: (row: R) => ComponentChildren;
};

// Picked are the rows that were chosen; keep leaves those of some ids chosen.
export type Picked<R> = { rows: R[]; keep: (ids: string[]) => void };

type Props<R extends { id: string }> = {
  list: List<R>;
  label: string;
  id: string;
  columns: Column<R>[];
  widths: string;
  href?: (row: R) => string;
  empty: ComponentChildren;
  keys?: { keys: string; does: string; run: (row: R) => void }[];
  many?: ComponentType<Picked<R>>; // what can be done with the rows that were chosen
  pane?: ComponentType<{ of: R }>; // what is shown of the marked row, beside the list
  part?: boolean; // of a page that scrolls: the page keeps the arrow keys
};

const steps: Record<string, number> = table({
  j: 1,
  ArrowDown: 1,
  k: -1,
  ArrowUp: -1,
  PageDown: 15,
  PageUp: -15,
  Home: -1e9,
  End: 1e9,
});
const roomy = 44,
  compact = 32,
  tall = 64, // of a row of two lines
  screen = 100, // rows, more than any screen shows
  again = 20; // how often more rows are asked for to come back to a place

// useMark keeps which row is marked, by its id: rows that come above do not move it. Where
// the row has gone, the one in its place is marked. Whoever comes back to the list finds it
// as they left it: goal is the place that they left, until its rows are there.
function useMark<R extends { id: string }>(list: List<R>, name: string) {
  const mark = useRef({
      list: undefined as List<R> | undefined,
      id: "",
      at: 0,
      own: false,
      seek: false, // whether the row is to be brought into sight
      top: 0, // how far the list is scrolled, in rows
      goal: undefined as Place | undefined,
      rest: 0, // how many rows there were
      asks: 0,
    }),
    [, draw] = useState({});
  const ids = list.ids.value,
    m = mark.current,
    address = here.value.pathname + here.value.search,
    key = visit() && visit() + " " + name,
    ready = list.state.value === "ready" && !list.asking.value,
    failed = list.failure.value !== undefined;
  if (m.list !== list) {
    const goal = placeOf(key, address);
    Object.assign(m, { list, at: 0, own: false, seek: false, top: 0, goal, rest: goal?.count ?? 0, asks: again });
  }
  const g = m.goal;
  if (g && ready) {
    // A row that has gone is not looked for among many more rows than there were; and the
    // rows below the first one must fill the screen, or it could not be so far up.
    const first = ids.indexOf(g.first),
      all = first >= 0 && ids.length >= first + screen && (!g.mark || ids.includes(g.mark));
    if (all || ids.length > g.count + screen || !list.more || failed || m.asks <= 0) {
      Object.assign(m, { id: g.mark, at: g.at, own: g.own, seek: g.seek, goal: undefined });
      m.top = g.top && (first < 0 ? g.top : first + (g.top % 1));
    }
  }
  useEffect(() => {
    if (!ready || failed || !list.more || (!m.goal && ids.length >= m.rest) || m.asks-- <= 0) return;
    void list.older();
  }, [list, ids, ready]);
  let at = ids.indexOf(m.id);
  // where nobody has moved it, it does not leave the top
  if (at < 0 || (at > 7 && !m.own)) at = m.own ? Math.min(m.at, ids.length - 1) : 0;
  m.at = Math.max(0, at);
  m.id = ids[at] ?? m.id;
  const save = () => {
    if (!key || !ready || m.goal || m.list !== list) return;
    const { id, own, top } = m;
    keep(key, address, {
      mark: own ? id : "",
      at: m.at,
      own,
      first: ids[Math.floor(top)] ?? "",
      top,
      count: ids.length,
    });
  };
  const put = (id: string | undefined) => {
    if (id === undefined) return;
    m.id = id;
    m.own = true;
    draw({});
  };
  return {
    ...m,
    put,
    scrolled: (top: number) => {
      m.top = top;
      save();
    },
    // left is told, after the list was left, that another of its rows is shown.
    left: (id: string, at: number) => move(key, address, id, at),
    row: () => (m.goal ? undefined : list.rows.get(m.id)?.peek()),
    move: (step: number) => {
      if (m.goal) return;
      const now = list.ids.peek();
      put(now[Math.min(now.length - 1, Math.max(0, now.indexOf(m.id) + step))]);
    },
  };
}

// usePicked keeps which rows are chosen, and from which on Shift chooses.
function usePicked<R extends { id: string }>(list: List<R>) {
  const kept = useRef({ list, ids: new Set<string>(), from: "" }),
    [, draw] = useState({});
  const k = kept.current;
  if (k.list !== list) {
    k.list = list;
    k.ids = new Set([...k.ids].filter((id) => list.rows.has(id)));
  }
  const rows = list.ids.value.filter((id) => k.ids.has(id)).flatMap((id) => list.rows.get(id)?.peek() ?? []);
  return {
    rows,
    has: (id: string) => k.ids.has(id),
    toggle: (id: string) => {
      if (!k.ids.delete(id)) k.ids.add(id);
      k.from = id;
      draw({});
    },
    to: (id: string) => {
      const all = list.ids.peek(),
        a = all.indexOf(k.from),
        b = all.indexOf(id);
      for (let i = Math.min(a < 0 ? b : a, b); i <= Math.max(a, b); i++) k.ids.add(all[i]!);
      draw({});
    },
    keep: (ids: string[]) => {
      k.ids = new Set(ids);
      draw({});
    },
  };
}

type Chosen<R extends { id: string }> = ReturnType<typeof usePicked<R>>;

export function Table<R extends { id: string }>(p: Props<R>) {
  const box = useRef<HTMLDivElement>(null),
    [width, setWidth] = useState(1200);
  const mark = useMark(p.list, p.id),
    picked = usePicked(p.list);
  const ids = p.list.ids.value,
    pane = !!p.pane && shown(),
    shape = fit(p.widths, p.columns, width - (pane ? paneWidth : 0), !!p.many),
    height = shape.two ? tall : density.chosen.value === "compact" ? compact : roomy;
  useLayoutEffect(() => {
    const see = () => setWidth(box.current!.clientWidth);
    see();
    const size = new ResizeObserver(see);
    size.observe(box.current!);
    return () => size.disconnect();
  }, []);
  const last = useRef(p.list);
  // As soon as it is drawn and scrolled: a key that follows at once may leave the list.
  useLayoutEffect(() => {
    const grid = document.getElementById(p.id);
    if (grid && last.current !== p.list) grid.scrollTop = mark.top * height; // another list begins at its top
    last.current = p.list;
    if (grid) mark.scrolled(grid.scrollTop / height);
  });
  // The row of names is of the grid, which the list that is scrolled is.
  useLayoutEffect(() => {
    const grid = document.getElementById(p.id);
    if (!grid || !ids.length) return;
    grid.setAttribute("aria-owns", p.id + "-names");
    grid.setAttribute("aria-colcount", String(p.columns.length));
    if (p.many) grid.setAttribute("aria-multiselectable", "true");
  });
  const leave = () => {
    const rows = ids.flatMap((id, at) => {
      const row = p.list.rows.get(id)?.peek();
      return row && p.href ? [{ id, at, href: p.href(row) }] : [];
    });
    remember(
      rows.map((r) => r.href),
      (n) => mark.left(rows[n]!.id, rows[n]!.at),
    );
  };
  const open = () => {
    const row = mark.row();
    if (!row || !p.href) return;
    leave();
    go(p.href(row));
  };
  const move = (e: KeyboardEvent) => {
    document.getElementById(p.id)?.focus({ preventScroll: true });
    mark.move(steps[e.key] ?? 0);
  };
  const list = (keys: string, does: string, run: (e: KeyboardEvent) => void): Binding => ({
    keys,
    does,
    group: "Lists",
    run,
  });
  const of = (run: (row: R) => void) => () => {
    const row = mark.row();
    if (row) run(row);
  };
  useKeys([
    ...(p.keys ?? []).map((k) => list(k.keys, k.does, of(k.run))),
    list("j, k", "next, previous row", move),
    ...(p.part
      ? []
      : [
          list("ArrowDown, ArrowUp", "next, previous row", move),
          list("PageDown, PageUp", "many rows further, back", move),
          list("Home, End", "first, last row", move),
        ]),
    ...(p.many
      ? [
          list(
            "x",
            "select the row",
            of((row) => picked.toggle(row.id)),
          ),
          list(
            "X",
            "select to here",
            of((row) => picked.to(row.id)),
          ),
          ...(picked.rows.length ? [list("Escape", "select none", () => picked.keep([]))] : []),
        ]
      : []),
    ...(p.pane && fits() ? [list("i", "details beside the list", turn)] : []),
    ...(p.href ? [list("Enter", "open the row", open)] : []),
  ]);
  const fresh = p.list.fresh.value.length;
  const own = (e: KeyboardEvent) => {
    if (!p.part || e.ctrlKey || e.metaKey || e.altKey || e.key.length === 1 || !(e.key in steps)) return;
    e.preventDefault();
    mark.move(steps[e.key]!);
  };
  const Chosen = p.many,
    Details = p.pane,
    marked = pane && p.list.state.value === "ready" && !mark.goal ? p.list.rows.get(ids[mark.at] ?? "") : undefined;
  return (
    <div
      ref={box}
      class={"listbox" + (shape.two ? " stacked" : "") + (pane ? " beside" : "")}
      aria-busy={p.list.asking.value || undefined}
      onFocusCapture={(e) => {
        if ((e.target as Element).id === p.id && !mark.own) mark.put(mark.id);
      }}
    >
      {Chosen && <Chosen rows={picked.rows} keep={picked.keep} />}
      {fresh > 0 && (
        <button
          type="button"
          class="newer"
          onClick={() => {
            p.list.admit();
            document.getElementById(p.id)?.scrollTo(0, 0);
          }}
        >
          {fresh} new
        </button>
      )}
      {p.list.state.value === "loading" || (mark.goal && p.list.failure.value === undefined) ? (
        <Loading />
      ) : (
        p.list.failure.value !== undefined && <Trouble error={p.list.failure.value} again={() => void p.list.load()} />
      )}
      {p.list.state.value !== "ready" || mark.goal ? null : ids.length === 0 ? (
        <p class="empty">{p.empty}</p>
      ) : (
        <>
          <Names table={p} shape={shape} />
          <VList
            id={p.id}
            role="grid"
            label={p.label}
            count={ids.length}
            height={height}
            start={mark.top * height}
            active={mark.own ? mark.at : undefined}
            seek={mark.seek}
            onKeyDown={own}
            onEnd={() => void p.list.older()}
            onScroll={(top) => mark.scrolled(top / height)}
            onTop={(at) => {
              p.list.hold = !at;
              if (at) p.list.admit();
            }}
            row={(i) => (
              <Row
                key={ids[i]}
                i={i}
                on={i === mark.at}
                table={p}
                shape={shape}
                row={ids[i]!}
                pick={() => mark.put(ids[i])}
                chosen={p.many && picked}
                is={picked.has(ids[i]!)}
                leave={leave}
              />
            )}
          />
        </>
      )}
      {Details && marked && (
        <Pane key={marked.value.id} label="Details of the marked row">
          <Details of={marked.value} />
        </Pane>
      )}
    </div>
  );
}

// Names are the heads of the columns. In rows of two lines they are for readers alone.
function Names<R extends { id: string }>(p: { table: Props<R>; shape: Fit }) {
  return (
    <div id={p.table.id + "-names"} class="row names" role="row" style={{ gridTemplateColumns: p.shape.template }}>
      {p.table.many && (
        <span role="columnheader">
          <span class="away">Selected</span>
        </span>
      )}
      {p.shape.shown.map((c) => {
        const col = p.table.columns[c]!;
        return (
          <span key={c} role="columnheader" aria-colindex={c + 1} class={col.class}>
            {col.name || <span class="away">Actions</span>}
          </span>
        );
      })}
    </div>
  );
}

function Row<R extends { id: string }>(p: {
  i: number;
  on: boolean;
  row: string;
  table: Props<R>;
  shape: Fit;
  pick: () => void;
  chosen: Chosen<R> | undefined;
  is: boolean;
  leave: () => void;
}) {
  const row = p.table.list.rows.get(p.row)?.value,
    box = useRef<HTMLDivElement>(null);
  // What a patch has changed is tinted for a moment.
  useLayoutEffect(() => {
    if (!row || !p.table.list.patched.delete(row)) return;
    box.current?.classList.remove("changed");
    void box.current?.offsetWidth;
    box.current?.classList.add("changed");
  }, [row]);
  if (!row) return null;
  const href = p.table.href?.(row),
    id = p.table.id + p.i;
  return (
    <div
      ref={box}
      id={id}
      class={"row" + (p.on ? " on" : "")}
      role="row"
      aria-rowindex={p.i + 1}
      aria-selected={p.chosen ? p.is : undefined}
      style={{ gridTemplateColumns: p.shape.template }}
      onMouseDown={p.pick}
    >
      {p.chosen && (
        <span role="gridcell" class="pick">
          <input
            type="checkbox"
            tabIndex={-1}
            aria-labelledby={id + "-name"}
            checked={p.is}
            onClick={(e) => (e.shiftKey ? p.chosen!.to(p.row) : p.chosen!.toggle(p.row))}
          />
        </span>
      )}
      {p.shape.shown.map((c) => {
        const col = p.table.columns[c]!;
        return (
          <span
            key={c}
            id={col.wide ? id + "-name" : undefined}
            role="gridcell"
            aria-colindex={c + 1}
            class={(col.class ?? "") + (p.shape.two && c === p.shape.shown[0] ? " title" : "")}
          >
            {col.wide && href ? (
              <a href={href} tabIndex={-1} onClick={p.leave}>
                {col.cell(row)}
              </a>
            ) : (
              col.cell(row)
            )}
          </span>
        );
      })}
    </div>
  );
}
