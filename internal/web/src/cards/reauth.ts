// What takes a fresh sign-in: the password, or a mailed code of six digits, goes before the call.
import { op, type Call } from "../api";

const reauth = op<{ password?: string; code?: string }, { signed_in_at: string }>(
  "auth.reauth",
  "POST",
  "/auth/reauth",
  "per-request",
  [],
);

// proven is a call with the proof of who is there before it.
export function proven<In, Out>(call: Call<In, Out>): Call<In & { password: string }, Out> {
  return Object.assign(
    async (input: In & { password: string }, init?: { signal?: AbortSignal; key?: string }) => {
      const { password, ...rest } = input;
      await reauth(/^\d{6}$/.test(password) ? { code: password } : { password }, init);
      return call(rest as unknown as In, init);
    },
    { id: call.id, scope: call.scope, method: call.method, path: call.path },
  );
}
