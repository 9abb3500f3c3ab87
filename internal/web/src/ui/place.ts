// Where one was in the lists that were left: which row was marked, and what was in sight.
// It is given back to whoever goes back to a list, or up to it, and not to whoever comes
// anew. It is in memory alone, and of one account.
import { account } from "../api";
import { me } from "../session";

export type Place = {
  mark: string; // the id of the row that is marked
  at: number; // its place
  own: boolean; // whether somebody has marked it
  seek?: boolean; // whether it may be out of sight, and is to be seen
  first: string; // the id of the row at the top of what is seen
  top: number; // how far that is scrolled, in rows
  count: number; // rows that were there
};

const kept = new Map<string, Place & { of: string }>(),
  most = 100;
const of = (address: string) => address + " " + (account.peek() || me.peek()?.account.id);

// keep keeps a place under the visit of a page and the name of a list on it. The address
// has the filter of the list: with another, it is another list.
export function keep(key: string, address: string, p: Place) {
  kept.delete(key); // so that the one kept last is the last of all
  kept.set(key, { ...p, of: of(address) });
  if (kept.size > most) kept.delete(kept.keys().next().value!);
}

// move marks another row of a list that was left.
export function move(key: string, address: string, mark: string, at: number) {
  const p = placeOf(key, address);
  if (p) keep(key, address, { ...p, mark, at, own: true, seek: true });
}

export function placeOf(key: string, address: string): Place | undefined {
  const p = kept.get(key);
  return p?.of === of(address) ? p : undefined;
}
