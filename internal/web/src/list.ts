// Rows of a collection: a page of them from the server, more as one scrolls, and each
// kept fresh by the patches of a topic. A patch to a known row draws that row alone.
import { batch, effect, signal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { account, said } from "./api";
import { listen, turn, type Patch } from "./live";

export type Page<R> = { data: R[]; next_cursor?: string | null };
export type Fetch<R> = (cursor: string | undefined, off: AbortSignal) => Promise<Page<R>>;

// Asked keeps what came by the stream while an answer was under way: the answer may be
// older. What came is taken in once more on top of it; where the answer is newer, the
// patch that tells so is still to come.
class Asked<P> {
  private readonly open = new Map<number, P[]>();
  private next = 1;
  private last = 0;
  begin(): number { this.open.set(this.next, []); return this.next++; }
  came(all: P[]) { for (const kept of this.open.values()) kept.push(...all); }
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

export class List<R extends { id: string }> {
  readonly ids = signal<string[]>([]);
  readonly rows = new Map<string, Signal<R>>();
  readonly state = signal<"loading" | "ready" | "failed">("loading");
  readonly error = signal("");
  readonly fresh = signal<string[]>([]); // rows that came while one reads further down
  hold = false; // whether new rows wait in fresh
  private next: string | undefined;
  private busy = false;
  private readonly asked = new Asked<Patch>();
  private off = new AbortController();

  // fits tells which new or changed rows belong to the list; without it new rows do not
  // come in. drops says that a row that does not fit any more leaves at once; else it
  // stays until the list is loaded again, so that nothing moves under a reader.
  constructor(private readonly fetch: Fetch<R>, private readonly fits?: (row: R) => boolean, private readonly drops = false) {}

  get more() { return this.next !== undefined; }

  // load asks for the first rows.
  async load() {
    const n = this.asked.begin(), page = await this.ask(undefined, n);
    const since = page && this.asked.end(n);
    if (!page || !since) return;
    batch(() => {
      const had = new Set(page.data.map((r) => r.id));
      this.put(page.data);
      for (const id of this.rows.keys()) if (!had.has(id)) this.rows.delete(id);
      this.ids.value = page.data.map((r) => r.id);
      this.fresh.value = [];
      this.next = page.next_cursor ?? undefined;
      this.state.value = "ready";
      this.error.value = "";
      this.apply(since);
    });
  }

  // older asks for the rows after the last one.
  async older() {
    if (this.busy || this.next === undefined) return;
    this.busy = true;
    const n = this.asked.begin(), page = await this.ask(this.next, n);
    this.busy = false;
    const since = page && this.asked.end(n, false);
    if (!page || !since) return;
    batch(() => {
      const had = new Set(this.ids.value);
      this.put(page.data);
      this.ids.value = [...this.ids.value, ...page.data.map((r) => r.id).filter((id) => !had.has(id))];
      this.next = page.next_cursor ?? undefined;
      this.apply(since);
    });
  }

  private async ask(cursor: string | undefined, n: number): Promise<Page<R> | undefined> {
    try {
      return await this.fetch(cursor, this.off.signal);
    } catch (e) {
      if (!this.asked.end(n, false) || this.off.signal.aborted) return undefined;
      batch(() => { this.error.value = said(e); if (this.state.value === "loading") this.state.value = "failed"; });
      return undefined;
    }
  }

  private put(rows: R[]) {
    for (const row of rows) {
      const had = this.rows.get(row.id);
      if (had) had.value = row; else this.rows.set(row.id, signal(row));
    }
  }

  // apply takes patches in.
  apply(patches: Patch[]) {
    this.asked.came(patches);
    batch(() => {
      const fresh: string[] = [], gone = new Set<string>();
      for (const p of patches) {
        const had = this.rows.get(p.id);
        if (p.op === "remove") { if (had) { this.rows.delete(p.id); gone.add(p.id); } continue; }
        const fits = this.fits?.(p.row as R) ?? false;
        if (had) {
          had.value = { ...had.peek(), ...p.row };
          if (this.drops && this.fits && !fits) { this.rows.delete(p.id); gone.add(p.id); }
        } else if (fits && this.state.peek() === "ready" && !this.beyond(p.row as R)) {
          this.rows.set(p.id, signal(p.row as R));
          fresh.push(p.id);
        }
      }
      if (gone.size) {
        this.ids.value = this.ids.value.filter((id) => !gone.has(id));
        if (this.fresh.value.length) this.fresh.value = this.fresh.value.filter((id) => !gone.has(id));
      }
      if (!fresh.length) return;
      if (this.hold) this.fresh.value = [...fresh, ...this.fresh.value];
      else this.ids.value = this.merged(fresh);
    });
  }

  // admit shows the rows that waited.
  admit() {
    if (!this.fresh.value.length) return;
    batch(() => { this.ids.value = this.merged(this.fresh.value); this.fresh.value = []; });
  }

  // beyond tells whether a row is older than all that was asked for so far.
  private beyond(row: R): boolean {
    const last = this.rows.get(this.ids.peek().at(-1) ?? "")?.peek();
    return this.next !== undefined && last !== undefined && age(row) < age(last);
  }

  // merged puts new rows at their places, the newest first.
  private merged(fresh: string[]): string[] {
    const out = [...this.ids.peek()], of = (id: string) => age(this.rows.get(id)?.peek());
    for (const id of [...fresh].sort((a, b) => (of(a) < of(b) ? -1 : 1))) {
      const at = out.findIndex((have) => of(have) < of(id));
      out.splice(at < 0 ? out.length : at, 0, id);
    }
    return out;
  }

  stop() { this.off.abort(); }
}

// age is when a row was made, as text that sorts.
function age(row: any): string {
  return String(row?.created_at ?? row?.requested_at ?? row?.started_at ?? row?.updated_at ?? row?.id ?? "");
}

// useList makes a list that lives as long as its component and key.
export function useList<R extends { id: string }>(
  key: string, fetch: Fetch<R>, how: { topic?: string; fits?: (row: R) => boolean; drop?: boolean } = {},
): List<R> {
  const list = useMemo(() => new List<R>(fetch, how.fits, how.drop), [key]);
  useEffect(() => {
    const quiet = how.topic ? listen(how.topic, (p) => list.apply(p)) : () => {};
    const end = effect(() => { void turn.value; void account.value; void list.load(); });
    return () => { quiet(); end(); list.stop(); };
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
  stop() { this.off.abort(); }
}

// useOne asks for an object. What counts rows of topics is asked for again, at most once a
// second, when some of them change. With a topic, patches to the row of that id are merged in;
// changed tells which change makes the rest of the object old, so that it is asked for
// again.
export function useOne<T extends object>(
  key: string, fetch: (off: AbortSignal) => Promise<T>,
  how: { topic?: string; id?: string; changed?: (was: T, row: any) => boolean; counts?: string[] } = {},
): One<T> {
  const one = useMemo(() => new One<T>(fetch), [key]);
  useEffect(() => {
    const quiet = how.topic ? listen(how.topic, (patches) => {
      for (const p of patches) {
        const was = one.value.peek();
        if (p.id !== how.id || p.op === "remove") continue;
        one.merge(p.row);
        if (was && how.changed?.(was, p.row)) void one.load();
      }
    }) : () => {};
    let soon = 0;
    const again = () => { soon ||= window.setTimeout(() => { soon = 0; void one.load(); }, 1000); };
    const counted = (how.counts ?? []).map((topic) => listen(topic, again));
    const end = effect(() => { void turn.value; void account.value; void one.load(); });
    return () => { quiet(); end(); clearTimeout(soon); for (const stop of counted) stop(); one.stop(); };
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
    const quiet = listen(topic, (patches) => {
      const { of } = now.current;
      if (of === undefined || patches.some((p) => typeof of === "string" ? p.id === of : of(p))) due ||= window.setTimeout(() => { due = 0; now.current.load(); }, 300);
    });
    return () => { quiet(); clearTimeout(due); };
  }, [topic]);
}
