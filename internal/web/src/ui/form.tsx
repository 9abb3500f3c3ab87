// Fields of forms. What the server refuses is said at the field that it names.
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Problem, said, type Call } from "../api";
import { may } from "../session";
import { useIntent } from "./intent";
import { lack } from "./gate";
import { label, type Labels } from "./say";
import { usePress } from "./press";
import { tell } from "./toast";

export function Field(p: {
  label: string;
  hint?: ComponentChildren;
  error?: string[] | undefined;
  children: (id: string, described: string | undefined) => ComponentChildren;
}) {
  const id = useId(),
    wrong = p.error?.length ? id + "e" : undefined;
  return (
    <div class="field">
      <label for={id}>
        {p.label}
        {p.hint && <small>{p.hint}</small>}
      </label>
      <div>
        {p.children(id, wrong)}
        {wrong && <em id={wrong}>{p.error!.join(", ")}</em>}
      </div>
    </div>
  );
}

export type Problems = Record<string, string[]>;

type Props<In, Out> = {
  call: Call<In, Out>;
  read: (form: FormData) => In;
  done?: (out: Out) => void;
  failed?: (e: unknown) => boolean; // whether a refusal is said elsewhere
  submit: string;
  said?: string;
  class?: string;
  keep?: boolean;
  children: (wrong: (field: string) => string[] | undefined) => ComponentChildren;
  also?: ComponentChildren;
};

// Form sends its fields to a capability. A retry of the same values is the same call.
export function Form<In, Out>(p: Props<In, Out>) {
  const [wrong, setWrong] = useState<Problems>({}),
    [text, setText] = useState(""),
    [labels, setLabels] = useState<Labels>({}),
    [refused, setRefused] = useState(0);
  const form = useRef<HTMLFormElement>(null),
    touched = useRef(new Set<EventTarget | null>()), // the fields that were typed into since it was sent
    intent = useIntent(p.call);
  const allowed = may(p.call);
  const send = async (e: Event) => {
    e.preventDefault();
    if (intent.off) return;
    if (!allowed) return tell(lack(p.call) + ".");
    touched.current.clear();
    const had = new Map(fieldsOf(form.current!).map((el) => [el, el.value]));
    try {
      const out = await intent.send(p.read(new FormData(form.current!)));
      setWrong({});
      setText("");
      if (form.current && !touched.current.size) form.current.dataset.sent = "";
      if (form.current && !p.keep) clear(form.current, touched.current, had);
      if (p.said) tell(p.said);
      p.done?.(out);
    } catch (e) {
      if (p.failed?.(e)) {
        setWrong({});
        setText("");
        return;
      }
      const names = labelsOf(form.current!),
        errors = Object.entries((e instanceof Problem ? (e.body.errors ?? {}) : {}) as Problems);
      setLabels(names);
      setWrong(Object.fromEntries(errors.map(([k, v]) => [k, v.map((t) => (e as Problem).says(t, names))])));
      setText(said(e, names));
      setRefused((n) => n + 1);
    }
  };
  // What is wrong takes the focus as it is drawn: a moment later somebody may be typing.
  useLayoutEffect(() => {
    const at = document.activeElement,
      elsewhere = at?.matches("input, textarea, select") && !form.current!.contains(at);
    // Who types into another form, or into this one again, is not called back.
    if (refused && !touched.current.size && !elsewhere)
      (
        form.current!.querySelector<HTMLElement>("[aria-invalid=true]") ??
        form.current!.querySelector<HTMLElement>("[role=alert]")
      )?.focus();
  }, [refused]);
  // Ctrl and Enter send the form from within a text of several lines, too.
  const hurry = (e: KeyboardEvent) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) form.current?.requestSubmit();
  };
  usePress("answer", { run: () => form.current?.querySelector<HTMLElement>("input, textarea")?.focus() });
  const used = new Set<string>();
  const of = (field: string) => {
    used.add(field);
    return wrong[field];
  };
  const fields = p.children(of);
  return (
    <form
      ref={form}
      class={p.class}
      onSubmit={send}
      onInput={(e) => {
        touched.current.add(e.target);
        delete form.current!.dataset.sent;
      }}
      onKeyDown={hurry}
      autocomplete="off"
      noValidate
    >
      {allowed ? (
        fields
      ) : (
        <>
          <p class="dim">{lack(p.call)}.</p>
          <fieldset disabled>{fields}</fieldset>
        </>
      )}
      {text && <Said text={text} wrong={wrong} used={used} labels={labels} />}
      <div class="acts">
        {p.also}
        <button
          type="submit"
          class="main"
          disabled={intent.off}
          aria-disabled={!allowed || undefined}
          aria-busy={intent.busy}
          title={allowed ? undefined : lack(p.call)}
        >
          {p.submit}
          {intent.wait > 0 && ` (${intent.wait} s)`}
        </button>
      </div>
    </form>
  );
}

type Entry = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement;

const fieldsOf = (form: HTMLFormElement) =>
  [...form.elements].filter((el): el is Entry => el.matches("input, textarea, select"));

// labelsOf are the fields of a form by the names that the API has for them.
const labelsOf = (form: HTMLFormElement): Labels =>
  Object.fromEntries(
    fieldsOf(form).flatMap((el) => {
      const says = el.labels?.[0]?.firstChild?.textContent?.trim();
      return says ? [[el.dataset["field"] ?? el.name, says] as const] : [];
    }),
  );

// clear makes a form that was sent ready for the next. What was typed since stays: had is
// what its fields had when it was sent.
function clear(form: HTMLFormElement, touched: Set<EventTarget | null>, had: Map<Entry, string>) {
  const since = fieldsOf(form)
    .filter((el) => touched.has(el) && el.matches("textarea, input:not([type=checkbox], [type=radio], [type=file])"))
    .map((el) => [el, el.value] as const);
  form.reset();
  for (const [el, value] of since) {
    const was = el instanceof HTMLTextAreaElement ? (had.get(el) ?? "") : "";
    el.value = value.startsWith(was) ? value.slice(was.length) : value; // a text that was sent is not sent again
  }
}

// unsent tells whether the focus is in a field within an element, and the form of the field
// is neither on its way nor just sent.
export function unsent(within: Element | null | undefined): boolean {
  const at = document.activeElement,
    form = at?.closest("form");
  if (!at || !form || !within?.contains(at) || !at.matches("input, textarea, select")) return false;
  return form.dataset.sent === undefined && !form.querySelector("[aria-busy=true]");
}

// Said is a refusal as a whole. It is drawn after the fields, which say their own parts.
function Said(p: { text: string; wrong: Problems; used: Set<string>; labels: Labels }) {
  return (
    <p class="trouble" role="alert" tabIndex={-1}>
      {p.text}
      {Object.entries(p.wrong)
        .filter(([k]) => !p.used.has(k))
        .map(([k, v]) => (
          <span key={k}>
            {" "}
            {label(k, p.labels)} {v.join(", ")}.
          </span>
        ))}
    </p>
  );
}
