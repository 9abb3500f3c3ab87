// The one way the dashboard talks to the server: the public API with the session's
// cookie. What a control does is a capability, called by its id.
import { signal } from "@preact/signals";
import { plain, spoken, type Labels } from "./ui/say";

// Problem is a refusal of the server (RFC 9457).
export class Problem extends Error {
  fields: string[] = []; // what was asked with, by its names
  constructor(
    readonly status: number,
    readonly slug: string,
    readonly body: Record<string, any>,
    readonly after: number,
  ) {
    super(String(body.detail ?? body.title ?? `The server answered ${status}.`));
  }
  // says is a text of it for people, who do not know the names of fields.
  says(text: string, labels?: Labels): string {
    return plain(spoken(text, [...this.fields, ...Object.keys(this.body.errors ?? {})], labels));
  }
  // of says what is wrong with a field, "" for what belongs to none.
  of(field: string): string[] {
    return this.body.errors?.[field] ?? [];
  }
  // later says that the server has done nothing for now, and asks to be called again.
  get later(): boolean {
    return this.status === 429 || (this.status === 503 && this.slug === "too-many-open");
  }
  get reason(): string {
    return String(this.body.reason ?? "");
  }
  get request(): string {
    return String(this.body.request_id ?? "");
  }
}

// Over plain http on a name that is not loopback there is no crypto.randomUUID.
export const uuid = () =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (b) => b.toString(16).padStart(2, "0")).join("");

// account is the organisation that this tab acts for; empty: the session's own choice.
export const account = signal(sessionStorage.getItem("account") ?? "");
export function actFor(id: string) {
  sessionStorage.setItem("account", id);
  account.value = id;
}

// signedOut is true from the first call that the server refuses for want of a session.
export const signedOut = signal(false);

// operatorKey is the operator's token of this tab. It is in memory alone, and goes along
// only with what needs one of its scopes.
export type OperatorKey = { id: string; token: string; scopes: string[]; ends: number };
export const operatorKey = signal<OperatorKey | undefined>(undefined);
export const scopesOf = (k: OperatorKey | undefined) => (k && k.ends > Date.now() ? k.scopes : []);

function bearer(scope: string): Record<string, string> {
  const own = scopesOf(operatorKey.peek());
  return own.length && scope.split("+").every((s) => own.includes(s))
    ? { Authorization: "Bearer " + operatorKey.peek()!.token }
    : {};
}

export interface Call<In, Out> {
  (input: In, init?: { signal?: AbortSignal; key?: string }): Promise<Out>;
  readonly id: string; // of the capability
  readonly scope: string; // that it needs; empty: none
  readonly method: string;
  readonly path: string;
}

export function headers(): Record<string, string> {
  return account.peek() ? { "X-Svc-Account": account.peek() } : {};
}

// place puts the values of a path into it and takes them out of the input.
function place(path: string, rest: Record<string, unknown>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const v = encodeURIComponent(String(rest[name]));
    delete rest[name];
    return v;
  });
}

function search(values: Record<string, unknown>): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(values)) {
    if (v === undefined || v === null || v === "") continue;
    for (const one of Array.isArray(v) ? v : [v]) q.append(k, String(one));
  }
  return q.size ? "?" + q : "";
}

export function op<In, Out>(
  id: string,
  method: string,
  path: string,
  scope: string,
  query: string[] = [],
): Call<In, Out> {
  const call = async (input: In, init?: { signal?: AbortSignal; key?: string }) => {
    const rest = { ...(input as Record<string, unknown>) };
    let url = place(path, rest);
    const key = bearer(scope);
    const head: Record<string, string> = { Accept: "application/json", ...(key["Authorization"] ? key : headers()) };
    let body: string | undefined;
    if (method === "GET") url += search(rest);
    else {
      const asked: Record<string, unknown> = {};
      for (const k of query) {
        asked[k] = rest[k];
        delete rest[k];
      }
      url += search(asked);
      head["Idempotency-Key"] = init?.key ?? uuid();
      if (method !== "DELETE" || Object.keys(rest).length) {
        head["Content-Type"] = "application/json";
        body = JSON.stringify(rest);
      }
    }
    const res = await reached(
      fetch(url, { method, headers: head, body, signal: init?.signal, credentials: "same-origin" }),
    );
    // An answer that is cut off in its middle is none: text() fails then, where json() of
    // what came could be mistaken for an empty object.
    const text = await reached(res.text());
    let json: Record<string, any> = {};
    try {
      json = text ? JSON.parse(text) : {};
    } catch {
      /* a log or a page of something between us */
    }
    if (res.ok) return json as Out;
    if (res.status === 401 && key["Authorization"]) operatorKey.value = undefined;
    else if (res.status === 401 && path !== "/auth/reauth") signedOut.value = true;
    throw Object.assign(refusal(res, json), { fields: Object.keys(input as object) });
  };
  return Object.assign(call, { id, scope, method, path });
}

// refusal is an answer as a Problem.
export function refusal(res: Response, json: Record<string, any>): Problem {
  return new Problem(
    res.status,
    String(json.type ?? "")
      .split("/")
      .pop() ?? "",
    json,
    Number(res.headers.get("Retry-After") ?? 0),
  );
}

// own tells whether an address lies at this origin: the page can reach no other.
export const own = (address: string) => new URL(address, location.href).origin === location.origin;

// stored reads a text at an address that an answer has named, such as a log, or its first
// bytes; undefined where it lies at another origin.
export async function stored(address: string, off?: AbortSignal, most?: number): Promise<string | undefined> {
  if (!own(address)) return undefined;
  const head: Record<string, string> = most ? { Range: `bytes=0-${most - 1}` } : {},
    res = await reached(fetch(new URL(address, location.href), { signal: off, credentials: "omit", headers: head }));
  if (!res.ok) throw refusal(res, await res.json().catch(() => ({})));
  return reached(res.text());
}

// store sends a file to an address that an answer has named, with the headers that it asks for.
export async function store(address: string, headers: Record<string, string>, file: Blob): Promise<void> {
  const res = await reached(fetch(address, { method: "PUT", headers, body: file, credentials: "omit" }));
  if (!res.ok) throw refusal(res, await res.json().catch(() => ({})));
}

// save has the browser keep what a capability answers as a file.
export async function save<In>(call: Call<In, unknown>, input: In, name: string): Promise<void> {
  const res = await reached(
    fetch(place(call.path, { ...(input as Record<string, unknown>) }), {
      headers: headers(),
      credentials: "same-origin",
    }),
  );
  if (!res.ok) throw refusal(res, await res.json().catch(() => ({})));
  keep(await reached(res.blob()), name);
}

// keep has the browser keep a file.
export function keep(file: Blob, name: string) {
  const url = URL.createObjectURL(file),
    a = document.createElement("a");
  a.href = url;
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// tail returns the address of a stream.
export function tail<In>(path: string): (input: In) => string {
  return (input) => {
    const rest = { ...(input as Record<string, unknown>) };
    return place(path, rest) + search(rest);
  };
}

// Unreachable says that an answer did not come, or broke off.
export class Unreachable extends Error {
  constructor(why: unknown) {
    super("The server cannot be reached.", { cause: why });
  }
}

// reached is the answer that a part of a fetch promises. A fault of the page is a TypeError,
// too, so what fetch fails with gets a name of its own.
export const reached = <T>(answer: Promise<T>): Promise<T> =>
  answer.catch((e: unknown) => {
    throw e instanceof TypeError ? new Unreachable(e) : e;
  });

// said is a failure as a sentence for a person, in the words of the form that was sent.
export function said(e: unknown, labels?: Labels): string {
  return e instanceof Problem ? e.says(e.message, labels) : e instanceof Error ? e.message : String(e);
}
