// Who looks, and what they may do.
import { computed, effect, signal } from "@preact/signals";
import { account, actFor, operatorKey, Problem, scopesOf, signedOut, type Call } from "./api";
import { accountMe, tokenRevoke, type Identity } from "./client.gen";
import { unsubscribe } from "./push";

export const me = signal<Identity | undefined>(undefined);

// may tells whether the person may use a capability. Nobody is told no before the
// server has said who they are.
export function may(call: Pick<Call<never, unknown>, "scope">): boolean {
  return (
    !me.value ||
    call.scope
      .split("+")
      .every((s) => !s.includes(":") || me.value!.scopes.includes(s) || scopesOf(operatorKey.value).includes(s))
  );
}

export const operator = computed(() => me.value?.user?.platform_admin ?? false);

// signIn is the address of the sign-in page that leads back to where one is.
export function signIn(): string {
  return "/login?" + new URLSearchParams({ return_to: location.pathname + location.search + location.hash });
}

// others tells the tabs of this browser who is signed in: all of them have one cookie.
const others = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel("yardmaster-who");
const person = () => me.peek()?.user?.id ?? "";

export function start() {
  effect(() => {
    void account.value;
    void load();
  });
  // A page of somebody else, or one that the browser kept after a sign-out, is made anew.
  if (others)
    others.onmessage = (e: MessageEvent<unknown>) => {
      if (me.peek() && e.data !== person()) location.reload();
    };
  addEventListener("pageshow", (e) => {
    if (e.persisted) location.reload();
  });
}

// refused is why it cannot be told who looks, such as that they are in no organisation any more.
export const refused = signal<Problem | undefined>();

let again = 0, // the time at which it is asked again
  failures = 0;

// load asks who looks. Whoever is not signed in is sent to the sign-in page before they
// have seen anything; later a dialog says so, and the page stays.
export async function load(): Promise<void> {
  clearTimeout(again);
  const of = account.peek();
  try {
    const was = me.peek() && person(),
      now = await accountMe({});
    if (of !== account.peek()) return; // it is asked for the other
    if (was !== undefined && was !== (now.user?.id ?? "")) return location.reload();
    if (JSON.stringify(me.peek()) !== JSON.stringify(now)) me.value = now;
    failures = 0;
    signedOut.value = false;
    refused.value = undefined;
    if (was === undefined) others?.postMessage(person());
  } catch (e) {
    if (of !== account.peek()) return;
    // The organisation of the tab may be of who was signed in before, or have put them out.
    if (e instanceof Problem && e.status === 403 && account.peek()) {
      actFor("");
      return me.peek() && location.reload();
    }
    if (me.value && (!of || of === me.value.account.id)) return;
    if (signedOut.value) return location.assign(signIn());
    if (e instanceof Problem && e.status === 403) refused.value = e;
    // Without an answer nothing else begins: it is asked until there is one.
    const wait = e instanceof Problem && e.after ? e.after : Math.min(15, 2 ** failures++ / 2);
    again = window.setTimeout(() => void load(), wait * 1000);
  }
}

// forget leaves nothing of a person in the browser but the look: not what they have seen,
// nor the way for messages to them, nor an operator's key that works on. It gives up after
// two seconds.
export async function forget(): Promise<void> {
  const key = operatorKey.peek(),
    back = key ? tokenRevoke({ id: key.id }) : Promise.resolve();
  operatorKey.value = undefined;
  actFor("");
  for (const k of Object.keys(localStorage)) if (/^(viewed|draft):/.test(k)) localStorage.removeItem(k);
  const all = Promise.allSettled([back, unsubscribe()]);
  await Promise.race([all, new Promise((go) => setTimeout(go, 2000))]);
}
