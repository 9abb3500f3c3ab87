// A board as it is changed: its widgets are added, arranged by hand or by keys, changed and
// taken out, and kept together at the end.
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Problem, said, type Call } from "../api";
import {
  dashboardCreate,
  dashboardGet,
  dashboardUpdate,
  type Dashboard,
  type DashboardUpdateInput,
  type DashboardWidget,
  type DashboardWidgetSpec,
} from "../client.gen";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { Act, Empty } from "../ui/parts";
import { tell } from "../ui/toast";
import { next, packed, placed, sizeOf, widths, type Sized } from "./sources";
import { scopeOf, titleOf, Widget } from "./widget";
import { WidgetForm } from "./widgetform";

// Tile is a widget of a draft. One that the board has, and that was not changed, shows its data.
type Tile = Sized & { spec: DashboardWidgetSpec; has?: DashboardWidget };

const specOf = (w: DashboardWidget) =>
  Object.fromEntries(
    Object.entries({
      kind: w.kind,
      title: w.title,
      source: w.source,
      window: w.window,
      repo: w.repo,
      text: w.text,
    }).filter(([, v]) => v !== null),
  ) as DashboardWidgetSpec;

// tilesOf are the widgets of a board in the order in which they are read.
const tilesOf = (b: Dashboard): Tile[] =>
  placed(b).map((p) => {
    const has = b.widgets.find((w) => w.id === p.widget)!;
    return { key: has.id, w: p.w, h: p.h, spec: specOf(has), has };
  });

type Kept = { board: Dashboard; name: string; tiles: Tile[] };

// rebuilt makes the board of a name anew with the widgets of tiles, and lays them out.
async function rebuilt(
  to: { name: string; personal: boolean; replace?: boolean; if_version?: number },
  tiles: Tile[],
  key?: string,
) {
  const made = await dashboardCreate(
    { ...to, widgets: tiles.map((t) => t.spec) },
    key ? { key: key + "w" } : undefined,
  );
  const layout = packed(tiles.map((t, i) => ({ ...t, key: made.widgets[i]!.id })));
  return layout.length ? dashboardUpdate({ id: made.id, layout }, key ? { key: key + "l" } : undefined) : made;
}

// copied is a board of another name with the widgets of one.
export const copied = (b: Dashboard, to: { name: string; personal: boolean }, key?: string) =>
  rebuilt({ name: to.name, personal: to.personal }, tilesOf(b), key);

// keep keeps a draft: the name first, which may be refused; then the widgets, where they are
// others; and where they are. Each step is of the version that the one before has left.
const keep: Call<Kept, Dashboard> = Object.assign(
  async (p: Kept, init?: { key?: string }) => {
    const { board: b, name, tiles } = p,
      key = init?.key ?? "";
    let now = b.version;
    const put = async (how: DashboardUpdateInput, part: string) => {
      const out = await dashboardUpdate({ id: b.id, if_version: now, ...how }, { key: key + part });
      now = out.version;
      return out;
    };
    if (name !== b.name) await put({ name }, "n");
    const same =
      tiles.length === b.widgets.length && tiles.every((t) => t.has && b.widgets.some((w) => w.id === t.key));
    if (!same) return rebuilt({ name, personal: b.personal, replace: true, if_version: now }, tiles, key);
    return put({ layout: packed(tiles) }, "l");
  },
  { id: dashboardUpdate.id, scope: dashboardUpdate.scope, method: dashboardUpdate.method, path: dashboardUpdate.path },
);

let made = 0; // widgets of drafts, for their keys

export function BoardEdit(p: { of: Dashboard; done: (b?: Dashboard) => void }) {
  const [tiles, set] = useState(() => tilesOf(p.of)),
    [name, setName] = useState(p.of.name),
    [open, setOpen] = useState<string>(), // the key of the widget in the dialog, "" for a new one
    [dragged, drag] = useState<string>(),
    [base, setBase] = useState(p.of), // what the draft is a change of
    [met, meet] = useState<Dashboard>(); // what somebody else has made of it meanwhile
  const grips = useRef(new Map<string, HTMLElement>()),
    focus = useRef<string | undefined>(undefined);
  // What was moved is drawn elsewhere, and keeps the focus.
  useLayoutEffect(() => {
    if (focus.current !== undefined) grips.current.get(focus.current)?.focus();
    focus.current = undefined;
  });
  const put = (t: Tile, to: number) => {
    if (to < 0 || to >= tiles.length) return;
    const rest = tiles.filter((x) => x !== t);
    rest.splice(to, 0, t);
    focus.current = t.key;
    set(rest);
    tell(`“${nameOf(t)}” is number ${to + 1} of ${tiles.length}.`);
  };
  const size = (t: Tile, w: number, h: number) => {
    const now = { ...t, w: next(t.w, w), h: Math.max(1, Math.min(8, t.h + h)) };
    set(tiles.map((x) => (x === t ? now : x)));
    tell(`“${nameOf(t)}” has ${widths[now.w] ?? now.w + " columns"} of the width and ${now.h} of height.`);
  };
  const drop = (t: Tile) => {
    const at = tiles.indexOf(t);
    focus.current = (tiles[at + 1] ?? tiles[at - 1])?.key ?? "add";
    set(tiles.filter((x) => x !== t));
    tell(`“${nameOf(t)}” is taken out.`);
  };
  const pressed = (e: KeyboardEvent, t: Tile, at: number) => {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[e.key];
    if (e.key === "Delete") drop(t);
    else if (by === undefined) return;
    else if (!e.shiftKey) put(t, at + by);
    else if (/Left|Right/.test(e.key)) size(t, by, 0);
    else size(t, 0, by);
    e.preventDefault();
    e.stopPropagation();
  };
  const edited = tiles.find((t) => t.key === open);
  const take = (spec: DashboardWidgetSpec, w: number) => {
    const t: Tile = { key: edited?.key ?? `new${++made}`, spec, w, h: edited?.h ?? sizeOf(spec.kind)[1] };
    if (edited && JSON.stringify(spec) === JSON.stringify(edited.spec)) t.has = edited.has;
    set(edited ? tiles.map((x) => (x === edited ? t : x)) : [...tiles, t]);
    focus.current = t.key;
    setOpen(undefined);
  };
  const places = packed(tiles);
  return (
    <>
      <div class="tools">
        <label>
          Name{" "}
          <input
            class="short"
            name="name"
            value={name}
            maxLength={80}
            onInput={(e) => setName(e.currentTarget.value)}
          />
        </label>
        <button
          type="button"
          ref={(e) => {
            if (e) grips.current.set("add", e);
          }}
          disabled={tiles.length >= 40}
          onClick={() => setOpen("")}
        >
          Add a widget
        </button>
        <span class="grow" />
        <button type="button" onClick={() => p.done()}>
          Leave it as it was
        </button>
        <Act
          class="main"
          disabled={!name.trim()}
          call={keep}
          input={{ board: base, name: name.trim(), tiles }}
          done={(b) => {
            p.done(b);
            return "Kept.";
          }}
          failed={(e) => {
            if (!(e instanceof Problem) || e.slug !== "dashboard-changed") return false;
            void dashboardGet({ id: p.of.id }).then(meet, (e) => tell(said(e)));
            return true;
          }}
        >
          Keep the board
        </Act>
      </div>
      {met && (
        <section class="trouble" role="alert" aria-label="The board has changed">
          <p>Somebody has changed this board since you began. Nothing of yours was kept, and it is still below.</p>
          <div class="acts">
            <button type="button" onClick={() => p.done(met)}>
              See theirs, and leave mine
            </button>
            <button
              type="button"
              class="main"
              onClick={() => {
                setBase(met);
                meet(undefined);
              }}
            >
              Go on with mine, in place of theirs
            </button>
          </div>
        </section>
      )}
      <p class="dim" id="arrange">
        Drag a widget by its handle, or move it with the arrow keys there; with Shift they make it wider and higher, and
        Delete takes it out.
      </p>
      {tiles.length === 0 && (
        <Empty>The board is empty. Add a widget: a number, a series, a table, a list or a text.</Empty>
      )}
      <ol class="tiles">
        {tiles.map((t, i) => (
          <li
            key={t.key}
            class={"tile card fig " + t.spec.kind}
            style={spot(places[i]!)}
            onDragOver={(e) => dragged && e.preventDefault()}
            onDrop={(e) => {
              e.preventDefault();
              const from = tiles.find((x) => x.key === dragged);
              if (from && from !== t) put(from, i);
              drag(undefined);
            }}
          >
            <div class="acts">
              <button
                type="button"
                class="grip sm"
                aria-label={"Move " + nameOf(t)}
                draggable
                aria-describedby="arrange"
                ref={(e) => {
                  if (e) grips.current.set(t.key, e);
                  else grips.current.delete(t.key);
                }}
                onDragStart={(e) => {
                  e.dataTransfer?.setData("text/plain", nameOf(t));
                  drag(t.key);
                }}
                onDragEnd={() => drag(undefined)}
                onKeyDown={(e) => pressed(e, t, i)}
              >
                Move
              </button>
              <button
                type="button"
                class="sm"
                aria-label={"Earlier: " + nameOf(t)}
                disabled={i === 0}
                onClick={() => put(t, i - 1)}
              >
                ←
              </button>
              <button
                type="button"
                class="sm"
                aria-label={"Later: " + nameOf(t)}
                disabled={i === tiles.length - 1}
                onClick={() => put(t, i + 1)}
              >
                →
              </button>
              <button type="button" class="sm" aria-label={"Change " + nameOf(t)} onClick={() => setOpen(t.key)}>
                Change
              </button>
              <button type="button" class="danger sm" aria-label={"Take out " + nameOf(t)} onClick={() => drop(t)}>
                ✕
              </button>
            </div>
            {t.has ? <Widget board={p.of} of={t.has} /> : <Unseen of={t} />}
          </li>
        ))}
      </ol>
      {open !== undefined && (
        <Dialog title={edited ? "Change the widget" : "Add a widget"} close={() => setOpen(undefined)}>
          <WidgetForm of={edited?.spec} width={edited?.w} done={take} />
        </Dialog>
      )}
    </>
  );
}

const whole = (s: DashboardWidgetSpec) => ({
  kind: s.kind,
  title: s.title ?? null,
  source: s.source ?? null,
  window: s.window ?? null,
  repo: s.repo ?? null,
});
const nameOf = (t: Tile) => titleOf(whole(t.spec));

const Unseen = (p: { of: Tile }) => (
  <>
    <header>
      <h2>{inert(nameOf(p.of))}</h2>
      <p>{scopeOf(whole(p.of.spec))}</p>
    </header>
    <div class="body">
      <Empty>It is filled once the board is kept.</Empty>
    </div>
  </>
);

// spot is a place on the grid, for the sheet.
export const spot = (p: { x: number; y: number; w: number; h: number }) => ({
  "--x": String(p.x + 1),
  "--y": String(p.y + 1),
  "--w": String(p.w),
  "--h": String(p.h),
});
