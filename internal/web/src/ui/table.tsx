// Table is a list page's grid: rows of one height, moved through with keys, opened with
// Enter, more of them as one scrolls.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { go } from "../route";
import type { List } from "../list";
import { useKeys } from "./keys";
import { remember } from "./trail";
import { Loading, Trouble } from "./parts";
import { VList } from "./vlist";

export type Column<R> = { name: string; class?: string; wide?: boolean; cell: (row: R) => ComponentChildren };

type Props<R extends { id: string }> = {
  list: List<R>; label: string; id: string; columns: Column<R>[]; widths: string; href?: (row: R) => string; empty: ComponentChildren;
  keys?: (row: R, key: string) => boolean;
};

const steps: Record<string, number> = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 };
const height = 40;

export function Table<R extends { id: string }>(p: Props<R>) {
  const [active, setActive] = useState(0);
  const ids = p.list.ids.value;
  const leave = () => { const rows = ids.map((id) => p.list.rows.get(id)?.peek()); remember(rows.flatMap((r) => r && p.href ? [p.href(r)] : [])); };
  const move = (e: KeyboardEvent) => {
    const step = steps[e.key], row = p.list.rows.get(ids[active] ?? "")?.peek();
    if (step) setActive(Math.min(ids.length - 1, Math.max(0, active + step)));
    else if (e.key === "Enter" && row && p.href) { leave(); go(p.href(row)); }
    else if (!(row && p.keys?.(row, e.key))) return;
    e.preventDefault();
  };
  useKeys([{ keys: "j, k", does: "next, previous row", group: "Lists", run: (e) => { document.getElementById(p.id)?.focus(); move(e); } },
    { keys: "Enter", does: "open the row", group: "Lists", run: move }]);
  if (p.list.state.value === "loading") return <Loading />;
  if (p.list.state.value === "failed") return <Trouble error={new Error(p.list.error.value)} again={() => void p.list.load()} />;
  const fresh = p.list.fresh.value.length;
  return <>
    {fresh > 0 && <button type="button" class="fresh" onClick={() => { p.list.admit(); document.getElementById(p.id)?.scrollTo(0, 0); }}>{fresh} new</button>}
    {p.list.error.value && <p class="trouble" role="alert">{p.list.error.value}</p>}
    {ids.length === 0 ? <p class="empty">{p.empty}</p> : <>
      <div class="row names" style={{ gridTemplateColumns: p.widths }} aria-hidden="true">{p.columns.map((c) => <span key={c.name} class={c.class}>{c.name}</span>)}</div>
      <VList id={p.id} role="grid" label={p.label} count={ids.length} height={height} active={Math.min(active, ids.length - 1)} onKeyDown={move}
        onEnd={() => void p.list.older()} onTop={(at) => { p.list.hold = !at; if (at) p.list.admit(); }}
        row={(i) => <Row key={ids[i]} i={i} on={i === active} table={p} row={ids[i]!} pick={() => setActive(i)} leave={leave} />} /></>}
  </>;
}

function Row<R extends { id: string }>(p: { i: number; on: boolean; row: string; table: Props<R>; pick: () => void; leave: () => void }) {
  const row = p.table.list.rows.get(p.row)?.value;
  if (!row) return null;
  const href = p.table.href?.(row);
  return <div id={p.table.id + p.i} class={"row" + (p.on ? " on" : "")} role="row" aria-rowindex={p.i + 1} style={{ gridTemplateColumns: p.table.widths }} onMouseDown={p.pick}>
    {p.table.columns.map((c) => <span key={c.name} role="gridcell" class={c.class}>
      {c.wide && href ? <a href={href} tabIndex={-1} onClick={p.leave}>{c.cell(row)}</a> : c.cell(row)}</span>)}</div>;
}
