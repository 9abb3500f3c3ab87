// An object that a page knows by its id alone, shown by its name once that is read.
import type { Call } from "../api";
import { askGet, taskRunStatus } from "../client.gen";
import { useOne } from "../list";
import { may } from "../session";
import { inert } from "../ui/ansi";

// Named is a link to an object; its short id stands where the name cannot be had.
export function Named<T extends object>(p: {
  id: string;
  href: string;
  get: Call<never, T>;
  read: (signal: AbortSignal) => Promise<T>;
  name: (of: T) => string;
}) {
  const one = useOne<T>(p.id, (signal) => (may(p.get) ? p.read(signal) : Promise.reject(new Error(""))));
  return <a href={p.href}>{one.value.value ? inert(p.name(one.value.value)) || p.id.slice(0, 8) : p.id.slice(0, 8)}</a>;
}

export const NamedTask = (p: { id: string }) => (
  <Named
    key={p.id}
    id={p.id}
    href={"/ui/tasks/" + p.id}
    get={taskRunStatus}
    read={(signal) => taskRunStatus({ id: p.id }, { signal })}
    name={(t) => t.title}
  />
);

export const NamedAsk = (p: { id: string }) => (
  <Named
    key={p.id}
    id={p.id}
    href={"/ui/asks/" + p.id}
    get={askGet}
    read={(signal) => askGet({ askId: p.id }, { signal })}
    name={(a) => a.title}
  />
);
