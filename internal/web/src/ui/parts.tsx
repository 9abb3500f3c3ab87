// The small parts that pages are made of. None knows a capability.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Problem, said, type Call } from "../api";
import { may } from "../session";
import { inert } from "./ansi";
import { useIntent } from "./intent";
import { tell } from "./toast";
import { lack } from "./gate";
import { usePress, type Purpose } from "./press";
import { label } from "./say";
import { words } from "./status";

type Children = { children?: ComponentChildren };

// arrived is set once a page was left for another: from then on a heading that is drawn
// anew, when what it names has come, takes the focus that went with the one before it.
let arrived = false;
export const arrive = () => {
  arrived = true;
};

// Head is the top of a page: its name, which the browser shows too, and its controls.
export function Head(p: { title: string; count?: number | string | undefined } & Children) {
  useEffect(() => {
    document.title = p.title + " - Yardmaster";
  }, [p.title]);
  const name = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (arrived && document.activeElement === document.body) name.current!.focus();
  }, []);
  return (
    <header class="head">
      <h1 ref={name} tabIndex={-1}>
        {p.title}
      </h1>
      {p.count !== undefined && <span class="dim num">{p.count}</span>}
      {p.children}
    </header>
  );
}

export function Facts(p: Children) {
  return <dl class="facts">{p.children}</dl>;
}

export function Fact(p: { name: string } & Children) {
  return (
    <div>
      <dt>{p.name}</dt>
      <dd>{p.children ?? "–"}</dd>
    </div>
  );
}

export function Empty(p: Children) {
  return <p class="empty">{p.children}</p>;
}

// Figure is a number and what it counts, and where that is shown.
export function Figure(p: { n: number | string | undefined; name: string; one?: string; href?: string }) {
  const says = (
    <>
      <span class="label">{p.n === 1 ? (p.one ?? p.name) : p.name}</span>
      <b class="v">{p.n ?? "…"}</b>
    </>
  );
  return p.href ? <a href={p.href}>{says}</a> : <div>{says}</div>;
}

// More asks for the rows after the last one, where there are any.
export function More(p: { of: { readonly more: boolean; older: () => unknown } }) {
  return p.of.more ? (
    <p>
      <button type="button" onClick={() => void p.of.older()}>
        Show more
      </button>
    </p>
  ) : null;
}

// Loading says so only after a while, so that nothing flickers.
export function Loading() {
  const [late, set] = useState(false);
  useEffect(() => {
    const t = setTimeout(() => set(true), 300);
    return () => clearTimeout(t);
  }, []);
  return (
    <p class="empty" aria-busy="true">
      {late ? "Loading…" : " "}
    </p>
  );
}

// Coming stands for what is not there yet: it loads, or it failed to.
export function Coming(p: { of: { error: { value: unknown }; load: () => Promise<unknown> } }) {
  const failure = p.of.error.value;
  return failure ? <Trouble error={failure} again={() => void p.of.load()} /> : <Loading />;
}

// Trouble shows a failure: what the server said of it, and the request to ask about.
export function Trouble(p: { error: unknown; again?: () => void }) {
  const e = p.error,
    after = e instanceof Problem && e.later ? Math.max(1, e.after) : 0,
    [left, setLeft] = useState(after),
    again = useRef(p.again);
  again.current = p.again;
  useEffect(() => setLeft(after), [e]);
  // What was refused for its number is asked for again when the server lets it in.
  useEffect(() => {
    if (!left || !again.current) return;
    const t = setTimeout(() => {
      setLeft(left - 1);
      if (left === 1) again.current?.();
    }, 1000);
    return () => clearTimeout(t);
  }, [left]);
  return (
    <div class="trouble" role="alert">
      <p>{said(e)}</p>
      {e instanceof Problem &&
        Object.entries((e.body.errors ?? {}) as Record<string, string[]>).map(([k, v]) => (
          <p key={k}>
            {label(k)} {e.says(v.join(", "))}
          </p>
        ))}
      {e instanceof Problem && e.request && (
        <p>
          <small>
            Request <Id of={e.request} />
          </small>
        </p>
      )}
      {p.again && (
        <button type="button" disabled={left > 0} onClick={p.again}>
          Try again{left > 0 && ` (${left} s)`}
        </button>
      )}
    </div>
  );
}

// Id is an id, short; a click copies it whole.
export function Id(p: { of: string; chars?: number }) {
  const short = p.of.slice(0, p.chars ?? 8);
  return (
    <button
      type="button"
      class="id"
      title={p.of + " (click to copy)"}
      aria-label={short + ", copy it whole"}
      onClick={() => copy(p.of)}
    >
      {short}
    </button>
  );
}

// copy puts text on the clipboard, by a selected field where the page is not secure.
export function copy(text: string) {
  const done = () => tell("Copied.");
  if (navigator.clipboard) {
    navigator.clipboard.writeText(text).then(done, () => tell("It could not be copied."));
    return;
  }
  const t = document.createElement("textarea");
  t.value = text;
  document.body.append(t);
  t.select();
  if (document.execCommand("copy")) done();
  t.remove();
}

// Meter shows a part of a whole, as a bar and in words.
export function Meter(p: { value: number; max: number; label: string; full?: boolean }) {
  const part = p.max > 0 ? Math.min(1, p.value / p.max) : 0;
  return (
    <span class="gauge">
      <svg class="meter" width="80" height="6" aria-hidden="true">
        <rect class="track" width="100%" height="6" rx="3" />
        <rect
          class={"level" + (p.full || part <= 0.8 ? "" : part >= 1 ? " over" : " warn")}
          width={part * 100 + "%"}
          height="6"
          rx="3"
        />
      </svg>{" "}
      <span class="num">{p.label}</span>
    </span>
  );
}

type ActProps<In, Out> = {
  call: Call<In, Out>;
  input: In | (() => In);
  class?: string;
  done?: string | ((out: Out) => string | void);
  failed?: (e: unknown) => boolean;
  confirm?: string; // what is asked before
  yes?: string; // what the button of that question says, where it is not what this one says
  disabled?: boolean;
  keys?: string;
  does?: Purpose; // what a key of its card finds it by
  again?: () => void;
} & Children;

// Act is a button that calls a capability. It is off, and says why, where the person
// lacks the scope; it counts down where the server says to wait.
export function Act<In, Out>(p: ActProps<In, Out>) {
  const intent = useIntent(p.call),
    allowed = may(p.call);
  // The second click of a double click is meant for what was there at the first: a card that
  // leaves a list has another take its place under the pointer.
  const run = async () => {
    if (!allowed) return tell(lack(p.call) + ".");
    if (p.confirm && !(await ask(p.confirm, p.yes ?? (typeof p.children === "string" ? p.children : undefined))))
      return;
    try {
      const out = await intent.send(typeof p.input === "function" ? (p.input as () => In)() : p.input);
      const text = typeof p.done === "function" ? p.done(out) : p.done;
      if (text) tell(text);
    } catch (e) {
      if (!p.failed?.(e)) tell(said(e));
    }
  };
  usePress(p.does, {
    run,
    busy: intent.busy,
    off: !allowed ? lack(p.call) : intent.off || p.disabled ? (p.keys ?? "") : undefined,
  });
  return (
    <button
      type="button"
      class={p.class}
      disabled={intent.off || p.disabled}
      aria-disabled={!allowed || undefined}
      aria-busy={intent.busy}
      title={allowed ? p.keys : lack(p.call)}
      onClick={(e) => e.detail > 1 || void run()}
    >
      {p.children}
      {intent.wait > 0 && ` (${intent.wait} s)`}
    </button>
  );
}

// ask asks before something that cannot be undone.
let asked: ((text: string, yes: string) => Promise<boolean>) | undefined;
export const ask = (text: string, yes = "Go on") => (asked ? asked(text, yes) : Promise.resolve(false));

// destroys tells whether what a button does cannot be had back, by its verb.
const destroys = (deed: string) =>
  /^(Cancel|Cut|Decline|Delete|Disconnect|End|Forget|Leave|Remove|Revoke|Stop|Take|Throw|Turn|Withdraw)\b/.test(deed);

export function Confirm() {
  const box = useRef<HTMLDialogElement>(null),
    answer = useRef<(yes: boolean) => void>(() => {});
  const [text, set] = useState({ of: "", yes: "" });
  const id = useId();
  useEffect(() => {
    asked = (of, yes) => {
      set({ of, yes });
      box.current!.showModal();
      return new Promise((go) => {
        answer.current = go;
      });
    };
    return () => {
      asked = undefined;
    };
  }, []);
  const end = (yes: boolean) => {
    answer.current(yes);
    answer.current = () => {};
    box.current!.close();
  };
  return (
    <dialog ref={box} class="brief" aria-labelledby={id} onClose={() => end(false)}>
      <p id={id}>{text.of}</p>
      <div class="acts">
        <button type="button" onClick={() => end(false)}>
          {destroys(text.yes) ? "Leave it" : "Not now"}
        </button>
        <button
          type="button"
          class={destroys(text.yes) ? "danger main" : "main"}
          onClick={(e) => e.detail > 1 || end(true)}
        >
          {text.yes}
        </button>
      </div>
    </dialog>
  );
}

// title is a name as it begins a line.
const title = (name: string) => words(name).replace(/^./, (c) => c.toUpperCase());

// Tabs switch between parts of a page. The chosen one is in the address; one that is not
// there is said to be none.
export function Tabs(
  p: { label: string; all: readonly string[]; at: string; to: (name: string) => void } & Children, // links beside them
) {
  const other = p.all.includes("all") ? "all" : p.all[0]!;
  return (
    <>
      <div class="tabs" role="group" aria-label={p.label}>
        {p.all.map((name) => (
          <button key={name} type="button" aria-pressed={p.at === name} onClick={() => p.to(name)}>
            {title(name)}
          </button>
        ))}
        {p.children}
      </div>
      {!p.all.includes(p.at) && (
        <p class="trouble" role="alert">
          There is no view “{inert(p.at)}”.{" "}
          <button type="button" onClick={() => p.to(other)}>
            Show {words(other)}
          </button>
        </p>
      )}
    </>
  );
}

// Search is a field that filters the page; "/" leads to it, Enter leaves it, Esc empties
// it. With now, each letter filters.
export function Search(p: {
  label: string;
  value: string;
  to: (text: string) => void;
  now?: boolean;
  whole?: string; // its text counts when it is complete, at Enter or when the field is left; this is its hint
}) {
  const timer = useRef(0),
    field = useRef<HTMLInputElement>(null),
    sent = useRef(p.value);
  const send = (text: string) => {
    clearTimeout(timer.current);
    sent.current = text;
    p.to(text);
  };
  // What else sets the filter sets the field, at once: later, letters may have come.
  useLayoutEffect(() => {
    if (p.value === sent.current) return;
    clearTimeout(timer.current);
    sent.current = p.value;
    field.current!.value = p.value;
  }, [p.value]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <input
      ref={field}
      type="search"
      aria-label={p.label}
      placeholder={p.whole ?? p.label + "  /"}
      defaultValue={p.value}
      onInput={(e) => {
        const text = e.currentTarget.value;
        clearTimeout(timer.current);
        if (p.whole && text) return;
        if (p.now || !text) send(text);
        else timer.current = window.setTimeout(() => send(text), 250);
      }}
      onChange={(e) => p.whole && send(e.currentTarget.value.trim())}
      onKeyDown={(e) => {
        const el = e.currentTarget;
        if (e.key === "Enter" || (e.key === "Escape" && !el.value)) el.blur();
        else if (e.key === "Escape") {
          e.preventDefault();
          el.value = "";
          send("");
        }
      }}
    />
  );
}

// NoFit says that nothing fits a filter, what the filter is, and how to clear it.
export function NoFit(p: { noun: string; of: (string | false)[]; clear: string }) {
  return (
    <>
      No {p.noun} fits the filter: {p.of.filter(Boolean).join(", ")}. <a href={p.clear}>Clear the filter</a>
    </>
  );
}

// Code is text to copy, such as a command.
export function Code(p: { text: string }) {
  return (
    <span class="cmd">
      <code>{p.text}</code>
      <button type="button" aria-label="Copy" onClick={() => copy(p.text)}>
        Copy
      </button>
    </span>
  );
}

// Counts is how many lines change, and in how many files where that is known.
export function Counts(p: { of: { additions: number; deletions: number; files?: number; binary?: boolean } }) {
  const c = p.of,
    files = c.files === undefined ? undefined : `${c.files} ${c.files === 1 ? "file" : "files"}`;
  return c.binary ? (
    <span class="dim">binary</span>
  ) : (
    <span class="num pm" title={files}>
      <span class="add">+{c.additions}</span> <span class="del">−{c.deletions}</span>
    </span>
  );
}
