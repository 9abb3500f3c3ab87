// What can be called: every capability of this server but streams.
import { op, stored, type Call } from "./api";

export type Arg = { name: string; in: "path" | "query"; need: boolean; many: boolean; doc: string };
export type Callable = {
  id: string;
  summary: string;
  method: string;
  path: string;
  scope: string;
  args: Arg[];
  body?: Record<string, unknown>;
  members: string[];
};

let known: Promise<Callable[]> | undefined;

// calls are the capabilities, asked for once.
export function calls(): Promise<Callable[]> {
  known ??= stored("/ui/a/calls.json")
    .then((text) => JSON.parse(text ?? "[]") as Callable[])
    .catch((e) => {
      known = undefined;
      throw e;
    });
  return known;
}

// caller is what calls a capability.
export const caller = (c: Callable): Call<Record<string, unknown>, unknown> =>
  op(
    c.id,
    c.method,
    c.path,
    c.scope,
    c.args.filter((a) => a.in === "query").map((a) => a.name),
  );
