// A widget of a board: its title, what it found, and the rows behind it.
import { useState } from "preact/hooks";
import {
  dashboardWidgetPage,
  type Dashboard,
  type DashboardPoint,
  type DashboardRow,
  type DashboardValue,
  type DashboardWidget,
} from "../client.gen";
import { inert } from "../ui/ansi";
import { Markdown } from "../ui/markdown";
import { Act, Empty } from "../ui/parts";
import { Interval } from "../ui/rate";
import { csv, Series } from "../ui/series";
import { words } from "../ui/status";
import { Time } from "../ui/time";
import { amountOf, hrefOf, labelOf, saidOf, sources, windows, type Source, type Window } from "./sources";

export const titleOf = (w: Pick<DashboardWidget, "title" | "source" | "kind">) =>
  w.title ?? (w.source ? (sources[w.source as Source]?.name ?? words(w.source)) : "Text");

// scopeOf says of what a widget is, and how far it looks back.
export const scopeOf = (w: Pick<DashboardWidget, "source" | "window" | "repo">) =>
  [w.window ? windows[w.window as Window] : w.source ? "now" : "", w.repo].filter(Boolean).join(", ");

// total adds the numbers of a series up.
function total(all: DashboardPoint[]): DashboardValue {
  const sum = (pick: (p: DashboardPoint) => string | number | null) =>
    all.every((p) => pick(p) === null) ? null : all.reduce((n, p) => n + Number(pick(p) ?? 0), 0);
  // A part without a call cost nothing; what it cost is not known where no call has a price.
  const unpriced = sum((p) => p.unpriced),
    money = all.reduce((n, p) => n + Number(p.usd ?? 0), 0);
  return { n: sum((p) => p.n), d: sum((p) => p.d), unpriced, usd: money || !unpriced ? String(money) : null };
}

export function Widget(p: { board: Dashboard; of: DashboardWidget }) {
  const w = p.of,
    from = w.source ? sources[w.source as Source] : undefined;
  return (
    <>
      <header>
        <h2>{from && w.kind !== "feed" ? <a href={from.href}>{inert(titleOf(w))}</a> : inert(titleOf(w))}</h2>
        {w.kind === "series" ? (
          <p>
            <b>{saidOf(total(w.data.points))}</b> in {scopeOf(w)}
          </p>
        ) : (
          <p>{scopeOf(w)}</p>
        )}
      </header>
      <div class="body">
        <Shown board={p.board} of={w} />
      </div>
    </>
  );
}

function Shown(p: { board: Dashboard; of: DashboardWidget }) {
  const w = p.of,
    d = w.data,
    from = w.source ? sources[w.source as Source] : undefined;
  if (d.missing_scopes.length)
    return <Empty>You do not see it: it needs the right to {d.missing_scopes.map(right).join(" and ")}.</Empty>;
  if (w.kind === "markdown") return <Markdown text={w.text ?? ""} />;
  if (!from) return <Empty>This version of the dashboard does not know what it shows.</Empty>;
  if (d.value) return <Stat of={d.value} now={from.now} />;
  if (w.kind === "series")
    return (
      <Series
        label={titleOf(w)}
        money={w.source === "cost"}
        {...(d.points.some((x) => x.unpriced) && { nothing: "No call in this time has a known price." })}
        {...(from.well && { well: from.well })}
        parts={d.points.map((x) => ({
          at: x.at,
          name: named(x.at, w.window),
          value: amountOf(x),
          says: saidOf(x) || "none",
          ...(x.d !== null && { of: x.d }),
        }))}
      />
    );
  return <Rows key={w.id} board={p.board} of={w} />;
}

// right is a scope in words: read:prs is to read prs.
const right = (scope: string) => scope.replace(":", " ").replace("prs", "pull requests").replace("runners", "boxes");

const named = (at: string, window: string | null) => {
  const t = new Date(at);
  return window === "1h" || window === "24h"
    ? t.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })
    : t.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
};

// Stat is one number. What is counted as of now is what there is, and no sample of it.
function Stat(p: { of: DashboardValue; now: true | undefined }) {
  const v = p.of;
  if (v.d !== null)
    return (
      <>
        <p class="fig1">{saidOf(v)}</p>
        {!p.now && <Interval n={v.n ?? 0} d={v.d} />}
      </>
    );
  return (
    <>
      <p class="fig1">{v.unpriced !== null ? saidOf({ ...v, unpriced: 0 }) : saidOf(v)}</p>
      {!!v.unpriced && <p class="dim">{saidOf({ ...v, usd: null })}, in no sum</p>}
    </>
  );
}

// Rows are those of a table or of a feed, a page of them at first.
function Rows(p: { board: Dashboard; of: DashboardWidget }) {
  const w = p.of,
    [seen, see] = useState<{ rows: DashboardRow[]; next: string | null }>(), // once there is more than the first ones
    rows = seen?.rows ?? w.data.rows,
    next = seen ? seen.next : w.data.next_cursor,
    most = Math.max(...rows.map((r) => r.d ?? amountOf(r)), 0),
    name = titleOf(w);
  if (!rows.length) return <Empty>{w.source === "waiting" ? "Nothing waits for people." : "Nothing yet."}</Empty>;
  const link = (r: DashboardRow) =>
    hrefOf(r) ? <a href={hrefOf(r)}>{inert(labelOf(r))}</a> : <>{inert(labelOf(r))}</>;
  return (
    <>
      {w.kind === "feed" ? (
        <ul class="feed">
          {rows.map((r) => (
            <li key={r.kind + r.id}>
              <p>{link(r)}</p>
              <p class="dim">
                {[r.repo && inert(r.repo), r.why && inert(words(r.why))].filter(Boolean).join(" · ")} <Time at={r.at} />
              </p>
            </li>
          ))}
        </ul>
      ) : (
        <table class="bars">
          <tbody>
            {rows.map((r) => (
              <tr key={r.label}>
                <th scope="row">
                  {link(r)}
                  {r.d !== null ? (
                    <Interval n={r.n ?? 0} d={r.d} />
                  ) : (
                    <svg class="meter" width="100%" height="6" aria-hidden="true">
                      <rect class="f1" width={`${most ? (100 * amountOf(r)) / most : 0}%`} height="6" rx="2" />
                    </svg>
                  )}
                </th>
                <td class="num end">{saidOf(r)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <footer class="spread">
        {next ? (
          <Act
            class="plain"
            call={dashboardWidgetPage}
            input={{ id: p.board.id, wid: w.id, cursor: next, per_page: 50 }}
            done={(page) => see({ rows: [...rows, ...page.rows], next: page.next_cursor })}
          >
            More of them
          </Act>
        ) : (
          <span />
        )}
        <button
          type="button"
          class="plain"
          aria-label={name + " as CSV"}
          onClick={() =>
            csv(name, [
              ["What", "Repository", "Why", "When", "Value"],
              ...rows.map((r) => [labelOf(r), r.repo ?? "", r.why ? words(r.why) : "", r.at ?? "", saidOf(r)]),
            ])
          }
        >
          CSV
        </button>
      </footer>
    </>
  );
}
