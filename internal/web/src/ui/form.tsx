// Fields of forms. What the server refuses is said at the field that it names.
import type { ComponentChildren } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import { Problem, said, uuid, type Call } from "../api";
import { may } from "../session";
import { tell } from "./toast";

export function Field(p: { label: string; hint?: ComponentChildren; error?: string[] | undefined; children: (id: string, described: string | undefined) => ComponentChildren }) {
  const id = useId(), wrong = p.error?.length ? id + "e" : undefined;
  return <div class="field"><label for={id}>{p.label}{p.hint && <small>{p.hint}</small>}</label>
    <div>{p.children(id, wrong)}{wrong && <em id={wrong}>{p.error!.join(", ")}</em>}</div></div>;
}

export type Problems = Record<string, string[]>;

type Props<In, Out> = {
  call: Call<In, Out>; read: (form: FormData) => In; done?: (out: Out) => void; submit: string; said?: string; class?: string; keep?: boolean;
  children: (wrong: (field: string) => string[] | undefined) => ComponentChildren; also?: ComponentChildren;
};

// Form sends its fields to a capability. A retry of the same values is the same call.
export function Form<In, Out>(p: Props<In, Out>) {
  const [wrong, setWrong] = useState<Problems>({}), [text, setText] = useState(""), [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null), key = useRef(uuid());
  const allowed = may(p.call);
  const send = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    try {
      const out = await p.call(p.read(new FormData(form.current!)), { key: key.current });
      key.current = uuid();
      setWrong({});
      setText("");
      if (!p.keep) form.current?.reset();
      if (p.said) tell(p.said);
      p.done?.(out);
    } catch (e) {
      if (e instanceof Problem) key.current = uuid();
      const errors = (e instanceof Problem ? e.body.errors ?? {} : {}) as Problems;
      setWrong(errors);
      setText(said(e));
      requestAnimationFrame(() => (form.current?.querySelector<HTMLElement>("[aria-invalid=true]") ?? form.current?.querySelector<HTMLElement>("[role=alert]"))?.focus());
    } finally {
      setBusy(false);
    }
  };
  const used = new Set<string>();
  const of = (field: string) => { used.add(field); return wrong[field]; };
  const fields = p.children(of);
  return <form ref={form} class={p.class} onSubmit={send} autocomplete="off" noValidate>{fields}
    {text && <Said text={text} wrong={wrong} used={used} />}
    <div class="acts">{p.also}<button class="main" disabled={busy || !allowed} aria-busy={busy} title={allowed ? undefined : "Needs the scope " + p.call.scope}>{p.submit}</button></div></form>;
}

// Said is a refusal as a whole. It is drawn after the fields, which say their own parts.
function Said(p: { text: string; wrong: Problems; used: Set<string> }) {
  return <p class="trouble" role="alert" tabIndex={-1}>{p.text}{Object.entries(p.wrong).filter(([k]) => !p.used.has(k)).map(([k, v]) => <span key={k}> {k} {v.join(", ")}.</span>)}</p>;
}
