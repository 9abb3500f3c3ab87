// An object that a page knows by its id alone, shown by its name once that is read.
import { account, type Call } from "../api";
import { askGet, boxGet, taskRunStatus } from "../client.gen";
import { useOne } from "../list";
import { may } from "../session";
import { inert } from "../ui/ansi";

// What many rows of a page name is asked for once: the questions that are under way.
const asked = new Map<string, Promise<object>>();

function together<T extends object>(name: string, ask: () => Promise<T>): Promise<T> {
  const key = account.peek() + " " + name,
    under = asked.get(key);
  if (under) return under as Promise<T>;
  const answer = ask().finally(() => asked.delete(key));
  asked.set(key, answer);
  return answer;
}

// Named is a link to an object; its short id stands where the name cannot be had.
export function Named<T extends object>(p: {
  id: string;
  href: string;
  get: Call<never, T>;
  read: () => Promise<T>;
  name: (of: T) => string;
}) {
  const one = useOne<T>(p.id, () =>
    may(p.get) ? together(p.get.id + " " + p.id, p.read) : Promise.reject(new Error("")),
  );
  return <a href={p.href}>{one.value.value ? inert(p.name(one.value.value)) || p.id.slice(0, 8) : p.id.slice(0, 8)}</a>;
}

export const NamedTask = (p: { id: string }) => (
  <Named
    key={p.id}
    id={p.id}
    href={"/ui/tasks/" + p.id}
    get={taskRunStatus}
    read={() => taskRunStatus({ id: p.id })}
    name={(t) => t.title}
  />
);

export const NamedAsk = (p: { id: string }) => (
  <Named
    key={p.id}
    id={p.id}
    href={"/ui/asks/" + p.id}
    get={askGet}
    read={() => askGet({ askId: p.id })}
    name={(a) => a.title}
  />
);

export const NamedBox = (p: { id: string }) => (
  <Named
    key={p.id}
    id={p.id}
    href={"/ui/boxes/" + p.id}
    get={boxGet}
    read={() => boxGet({ id: p.id })}
    name={(b) => b.name}
  />
);
