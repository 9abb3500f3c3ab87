// Who looks, and what they may do.
import { computed, effect, signal } from "@preact/signals";
import { account, operatorKey, scopesOf, signedOut, type Call } from "./api";
import { accountMe, type Identity } from "./client.gen";

export const me = signal<Identity | undefined>(undefined);

// may tells whether the person may use a capability. Nobody is told no before the
// server has said who they are.
export function may(call: Pick<Call<never, unknown>, "scope">): boolean {
  return !me.value || call.scope.split("+").every((s) => !s.includes(":") || me.value!.scopes.includes(s) || scopesOf(operatorKey.value).includes(s));
}

export const operator = computed(() => me.value?.user?.platform_admin ?? false);

// signIn is the address of the sign-in page that leads back to where one is.
export function signIn(): string {
  return "/login?" + new URLSearchParams({ return_to: location.pathname + location.search });
}

export function start() {
  effect(() => { void account.value; void load(); });
}

// load asks who looks. Whoever is not signed in is sent to the sign-in page before they
// have seen anything; later a dialog says so, and the page stays.
export async function load(): Promise<void> {
  try {
    me.value = await accountMe({});
    signedOut.value = false;
  } catch {
    if (signedOut.value && !me.value) location.assign(signIn());
  }
}
