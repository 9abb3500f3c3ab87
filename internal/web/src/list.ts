// Rows of a collection: a page of them from the server, more as one scrolls, and each
// kept fresh by the patches of a topic. A patch to a known row draws that row alone.
import { batch, computed, effect, signal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { account, said } from "./api";
import { changes, listen, opening, turn, type Patch } from "./live";

export type Page<R> = { data: R[]; next_cursor?: string | null; has_more?: boolean };
export type Fetch<R> = (cursor: string | undefined, off: AbortSignal) => Promise<Page<R>>;

// Told is a patch; a known one is of a row that is there, and does not bring it in.
type Told = Patch & { known?: boolean };

// Asked keeps what came by the stream while an answer was under way: the answer may be
// older. What came is taken in once more on top of it; where the answer is newer, the
// patch that tells so is still to come.
class Asked<P> {
  private readonly open = new Map<number, P[]>();
  private next = 1;
  private last = 0;
  begin(): number {
    this.open.set(this.next, []);
    return this.next++;
  }
  came(all: P[]) {
    for (const kept of this.open.values()) kept.push(...all);
  }
  // end gives what came since n began, or nothing if a later question for the whole has
  // been answered.
  end(n: number, whole = true): P[] | undefined {
    const kept = this.open.get(n);
    this.open.delete(n);
    if (n < this.last) return undefined;
    if (whole) this.last = n;
    return kept;
  }
}

const furthest = 20; // how often rows below the first are asked for, when a list is loaded again

export class List<R extends { id: string }> {
  readonly ids = signal<string[]>([]);
  readonly rows = new Map<string, Signal<R>>();
  readonly state = signal<"loading" | "ready" | "failed">("loading");
  readonly failure = signal<unknown>(undefined); // what the last question came to, if it failed
  readonly error = computed(() => (this.failure.value === undefined ? "" : said(this.failure.value)));
  readonly asking = signal(false); // whether the rows are those of the list before, and the answer is to come
  readonly patched = new WeakSet<R>(); // rows as patches have changed them, until that was shown
  readonly fresh = signal<string[]>([]); // rows that came while one reads further down
  hold = false; // whether new rows wait in fresh
  private next: string | undefined;
  private cut = false; // whether the server has rows beyond those it answers
  private busy = false;
  private deep = false; // whether somebody asked for more than the first rows
  private readonly asked = new Asked<Told>();
  // What was done to rows here until the server has answered, and what it told of them last.
  private assumed = new Map<string, { change: Partial<R>; told: R }>();
  private heir: List<R> | undefined; // the list that took the place of this one
  private off = new AbortController();

  // fits tells which new or changed rows belong to the list; without it new rows do not
  // come in. drops says that a row that does not fit any more leaves at once; else it
  // stays until the list is loaded again, so that nothing moves under a reader.
  constructor(
    private readonly fetch: Fetch<R>,
    private readonly fits?: (row: R) => boolean,
    private readonly drops = false,
  ) {}

  get more() {
    return this.next !== undefined;
  }

  // count is how many rows there are, as far as that is known.
  get count(): string | number | undefined {
    const n = this.ids.value.length;
    if (this.state.value !== "ready") return undefined;
    return this.next !== undefined || this.cut ? n + "+" : n;
  }

  // seed shows what fits of the rows of another list until the answer comes.
  seed(from: List<R>) {
    from.heir = this;
    this.assumed = from.assumed;
    const fits = this.fits;
    if (!fits || from.state.peek() !== "ready") return;
    this.ids.value = from.ids.peek().filter((id) => {
      const row = from.rows.get(id)?.peek();
      if (row && fits(row)) this.rows.set(id, signal(row));
      return this.rows.has(id);
    });
    this.asking.value = true;
    if (this.rows.size) this.state.value = "ready";
  }

  // renew takes rows in as they are now, those that are known.
  private renew(rows: R[]) {
    batch(() => this.put(rows.filter((r) => this.rows.has(r.id))));
  }

  // assume shows a change of a row before the server has answered the call that makes it:
  // what comes meanwhile may be older and does not undo it. The caller gives the answer to
  // what assume returns, or nothing if the call failed. Of the answer only what was changed
  // is taken: of the rest a patch may have told something newer.
  assume(id: string, change: Partial<R>): (answer?: R) => void {
    const told = this.assumed.get(id)?.told ?? this.rows.get(id)?.peek();
    if (!told) return () => {};
    const mine = { change, told };
    this.assumed.set(id, mine);
    this.renew([told]);
    return (answer) => {
      const now: Partial<R> = {};
      if (answer) for (const k in change) now[k] = answer[k];
      const last = this.assumed.get(id);
      if (last) last.told = { ...last.told, ...now };
      const end = () => {
        if (this.assumed.get(id) !== mine) return; // it was changed once more since
        this.assumed.delete(id);
        for (let l: List<R> | undefined = this; l; l = l.heir) l.renew([mine.told]);
      };
      if (!answer) return end();
      for (let l: List<R> | undefined = this; l; l = l.heir)
        l.asked.came([{ op: "upsert", id, row: now, topic: "", known: true }]);
      setTimeout(end, settled);
    };
  }

  // freshen takes in what an answer has of the rows that are known, beneath what comes meanwhile.
  async freshen(ask: () => Promise<Page<R>>) {
    const n = this.asked.begin(),
      page = await ask().catch(() => undefined),
      since = this.asked.end(n, false);
    if (!page || !since) return;
    batch(() => {
      this.renew(page.data);
      this.apply(since);
    });
  }

  // load asks for the rows anew, and for as many as there were: who has gone further down
  // finds their place.
  load() {
    return this.begin(false);
  }

  // refresh asks for the first rows where no topic tells of them, and leaves those beyond
  // them as they are, if somebody has asked for more. While they read further down,
  // what they see does not move.
  async refresh() {
    if (this.busy) return;
    if (this.hold) return this.freshen(() => this.fetch(undefined, this.off.signal));
    return this.begin(this.deep);
  }

  private async begin(keep: boolean) {
    const n = this.asked.begin(),
      page = await this.ask(undefined, n);
    if (!page || (!keep && this.deep && !(await this.further(page, n)))) return;
    const since = this.asked.end(n);
    if (!since) return;
    batch(() => {
      const ids = page.data.map((r) => r.id),
        had = new Set(ids),
        now = this.ids.value,
        after = keep && page.next_cursor ? now.slice(now.indexOf(ids.at(-1) ?? "") + 1) : [];
      this.put(page.data);
      this.ids.value = [...ids, ...after.filter((id) => !had.has(id))];
      const all = new Set(this.ids.value);
      for (const id of this.rows.keys()) if (!all.has(id)) this.rows.delete(id);
      this.fresh.value = [];
      if (!after.length) {
        this.next = page.next_cursor ?? undefined;
        if (keep) this.deep = false;
      }
      this.cut = page.has_more ?? false;
      this.state.value = "ready";
      this.failure.value = undefined;
      this.asking.value = false;
      this.apply(since);
    });
  }

  // further adds to a first page what follows it, until there are as many rows as now; it
  // tells whether the server has answered each time.
  private async further(page: Page<R>, n: number): Promise<boolean> {
    const had = this.ids.peek().length;
    for (let asks = 0; page.next_cursor && page.data.length < had && asks < furthest; asks++) {
      const next = await this.ask(page.next_cursor, n);
      if (!next) return false;
      page.data.push(...next.data);
      page.next_cursor = next.next_cursor;
    }
    return true;
  }

  // older asks for the rows after the last one.
  async older() {
    if (this.busy || this.next === undefined) return;
    this.busy = true;
    const n = this.asked.begin(),
      page = await this.ask(this.next, n);
    this.busy = false;
    const since = page && this.asked.end(n, false);
    if (!page || !since) return;
    batch(() => {
      const had = new Set(this.ids.value);
      this.put(page.data);
      this.ids.value = [...this.ids.value, ...page.data.map((r) => r.id).filter((id) => !had.has(id))];
      this.next = page.next_cursor ?? undefined;
      this.deep = true;
      this.apply(since);
    });
  }

  private async ask(cursor: string | undefined, n: number): Promise<Page<R> | undefined> {
    try {
      return await this.fetch(cursor, this.off.signal);
    } catch (e) {
      if (!this.asked.end(n, false) || this.off.signal.aborted) return undefined;
      batch(() => {
        this.failure.value = e;
        this.asking.value = false;
        if (this.state.value === "loading") this.state.value = "failed";
      });
      return undefined;
    }
  }

  // over is a row with what was done to it here.
  private over(row: R): R {
    const mine = this.assumed.get(row.id);
    if (!mine) return row;
    mine.told = row;
    return { ...row, ...mine.change };
  }

  private put(rows: R[]) {
    for (const told of rows) {
      const row = this.over(told),
        had = this.rows.get(row.id);
      if (had) had.value = row;
      else this.rows.set(row.id, signal(row));
    }
  }

  // apply takes patches in.
  apply(patches: Told[]) {
    this.asked.came(patches);
    batch(() => {
      const fresh: string[] = [],
        gone = new Set<string>();
      for (const p of patches) {
        const had = this.rows.get(p.id);
        if (p.op === "remove") {
          if (had) {
            this.rows.delete(p.id);
            gone.add(p.id);
          }
          continue;
        }
        const fits = this.fits?.(p.row as R) ?? false;
        if (had) {
          const was = had.peek(),
            now = this.over({ ...(this.assumed.get(p.id)?.told ?? was), ...p.row });
          if (differs(was, now)) this.patched.add(now);
          had.value = now;
          if (this.drops && this.fits && !fits && !p.known) {
            this.rows.delete(p.id);
            gone.add(p.id);
          }
        } else if (fits && !p.known && this.state.peek() === "ready" && !this.beyond(p.row as R)) {
          this.rows.set(p.id, signal(p.row as R));
          fresh.push(p.id);
        }
      }
      if (gone.size) {
        this.ids.value = this.ids.value.filter((id) => !gone.has(id));
        if (this.fresh.value.length) this.fresh.value = this.fresh.value.filter((id) => !gone.has(id));
      }
      const all = [...new Set(fresh)].filter((id) => this.rows.has(id));
      if (!all.length) return;
      if (this.hold) this.fresh.value = [...all, ...this.fresh.value];
      else this.ids.value = this.merged(all);
    });
  }

  // admit shows the rows that waited.
  admit() {
    if (!this.fresh.value.length) return;
    batch(() => {
      this.ids.value = this.merged(this.fresh.value);
      this.fresh.value = [];
    });
  }

  // beyond tells whether a row is older than all that was asked for so far.
  private beyond(row: R): boolean {
    const last = this.rows.get(this.ids.peek().at(-1) ?? "")?.peek();
    return this.next !== undefined && last !== undefined && age(row) < age(last);
  }

  // merged puts new rows at their places, the newest first.
  private merged(fresh: string[]): string[] {
    const out = [...this.ids.peek()],
      of = (id: string) => age(this.rows.get(id)?.peek());
    for (const id of [...fresh].sort((a, b) => (of(a) < of(b) ? -1 : 1))) {
      const at = out.findIndex((have) => of(have) < of(id));
      out.splice(at < 0 ? out.length : at, 0, id);
    }
    return out;
  }

  stop() {
    this.off.abort();
  }
}

// differs tells whether a patch says anything new of a row.
function differs(was: any, row: any): boolean {
  for (const k in row) {
    const a = was[k],
      b = row[k];
    if (a !== b && !(a && b && typeof b === "object" && JSON.stringify(a) === JSON.stringify(b))) return true;
  }
  return false;
}

// age is when a row was made, as text that sorts.
function age(row: any): string {
  return String(row?.created_at ?? row?.requested_at ?? row?.started_at ?? row?.updated_at ?? row?.id ?? "");
}

const settled = 1000; // ms after an answer in which patches from before it may come
const typing = 150; // ms to wait for the next letter before the server is asked

// useList makes a list that lives as long as its component and key. With another key, what
// fits of its rows stays until the server has answered.
export function useList<R extends { id: string }>(
  key: string,
  fetch: Fetch<R>,
  how: { topic?: string; fits?: (row: R) => boolean; drop?: boolean } = {},
): List<R> {
  const last = useRef<List<R> | undefined>(undefined);
  const list = useMemo(() => {
    const made = new List<R>(fetch, how.fits, how.drop);
    if (last.current) made.seed(last.current);
    return (last.current = made);
  }, [key]);
  useEffect(() => {
    let soon = 0,
      begun = !list.asking.peek();
    const quiet = how.topic ? listen(how.topic, (p) => list.apply(p)) : () => {};
    const first = opening();
    const end = effect(() => {
      const opens = first(turn.value);
      void account.value;
      if (opens && !how.topic && list.state.peek() !== "failed") return;
      clearTimeout(soon);
      if (begun) void list.load();
      else soon = window.setTimeout(() => void list.load(), typing);
      begun = true;
    });
    return () => {
      quiet();
      clearTimeout(soon);
      end();
      list.stop();
    };
  }, [list]);
  return list;
}

// One is an object, asked for once and kept fresh by the patches of a topic.
export class One<T> {
  readonly value = signal<T | undefined>(undefined);
  readonly error = signal<unknown>(undefined);
  private readonly asked = new Asked<object>();
  private off = new AbortController();
  constructor(private readonly fetch: (off: AbortSignal) => Promise<T>) {}
  async load() {
    const n = this.asked.begin();
    let got: T;
    try {
      got = await this.fetch(this.off.signal);
    } catch (e) {
      if (this.asked.end(n) && !this.off.signal.aborted) this.error.value = e;
      return;
    }
    const since = this.asked.end(n);
    if (!since) return;
    this.value.value = since.length ? Object.assign({}, got, ...since) : got;
    this.error.value = undefined;
  }
  // merge takes a changed row in.
  merge(row: object) {
    this.asked.came([row]);
    const was = this.value.peek();
    if (was) this.value.value = { ...was, ...row };
  }
  stop() {
    this.off.abort();
  }
}

// useOne asks for an object. What counts rows of topics is asked for again, at most once a
// second, when some of them change. With a topic, patches to the row of that id are merged in;
// changed tells which change makes the rest of the object old, so that it is asked for
// again.
export function useOne<T extends object>(
  key: string,
  fetch: (off: AbortSignal) => Promise<T>,
  how: { topic?: string; id?: string; changed?: (was: T, row: any) => boolean; counts?: string[] } = {},
): One<T> {
  const one = useMemo(() => new One<T>(fetch), [key]);
  useEffect(() => {
    const quiet = how.topic
      ? listen(how.topic, (patches) => {
          for (const p of patches) {
            const was = one.value.peek();
            if (p.id !== how.id || p.op === "remove") continue;
            one.merge(p.row);
            if (was && how.changed?.(was, p.row)) void one.load();
          }
        })
      : () => {};
    let soon = 0;
    const again = () => {
      soon ||= window.setTimeout(() => {
        soon = 0;
        void one.load();
      }, 1000);
    };
    const counted = (how.counts ?? []).map((topic) => changes(topic, again));
    const first = opening();
    const end = effect(() => {
      const opens = first(turn.value);
      void account.value;
      if (opens && !how.topic && !one.error.peek()) return;
      void one.load();
    });
    return () => {
      quiet();
      end();
      clearTimeout(soon);
      for (const stop of counted) stop();
      one.stop();
    };
  }, [one]);
  return one;
}

// useAgain calls load when a patch to a row of a topic comes: of one id, of those that
// of picks, or of any. It is for what has no topic of its own and changes with that row.
export function useAgain(topic: string, of: string | undefined | ((p: Patch) => boolean), load: () => void) {
  const now = useRef({ of, load });
  now.current = { of, load };
  useEffect(() => {
    let due = 0;
    const quiet = changes(topic, (patches) => {
      const { of } = now.current;
      if (of === undefined || patches.some((p) => (typeof of === "string" ? p.id === of : of(p))))
        due ||= window.setTimeout(() => {
          due = 0;
          now.current.load();
        }, 300);
    });
    return () => {
      quiet();
      clearTimeout(due);
    };
  }, [topic]);
}
