// Fields in one line each: a text, a choice, a switch. And what goes with forms: a
// secret that is shown once, a list of cards that grows on demand.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { List } from "../list";
import { Field } from "./form";
import { copy, Empty, Loading, More, Trouble } from "./parts";
import { words } from "./status";

type Wrong = (field: string) => string[] | undefined;

// of reads a form: a text without the blanks around it, or nothing.
export const of = (form: FormData, name: string): string | undefined =>
  String(form.get(name) ?? "").trim() || undefined;
// number reads a number; what is none is sent as it is, for the server to say so.
export const number = (form: FormData, name: string): number | undefined => {
  const text = of(form, name);
  return text === undefined ? undefined : Number.isFinite(Number(text)) ? Number(text) : (text as unknown as number);
};
// lines reads the lines or words of a text.
export const lines = (form: FormData, name: string): string[] =>
  (of(form, name) ?? "")
    .split(/[\n,]+/)
    .map((s) => s.trim())
    .filter(Boolean);
// pairs reads lines such as name=value.
export function pairs(form: FormData, name: string): Record<string, string> | undefined {
  const out = new Map<string, string>();
  for (const line of (of(form, name) ?? "").split("\n")) {
    const at = line.indexOf("=");
    if (line.trim()) out.set((at < 0 ? line : line.slice(0, at)).trim(), at < 0 ? "" : line.slice(at + 1).trim());
  }
  return out.size ? Object.fromEntries(out) : undefined;
}
// unpaired is the text that pairs reads.
export const unpaired = (all: Record<string, string> | undefined | null) =>
  Object.entries(all ?? {})
    .map(([k, v]) => k + "=" + v)
    .join("\n");

type TextProps = {
  name: string;
  label: string;
  hint?: ComponentChildren;
  wrong: Wrong;
  field?: string;
  value?: string | number | null | undefined;
  rows?: number;
  code?: boolean;
  type?: "text" | "password" | "url" | "email";
  decimal?: boolean;
  place?: string;
  need?: boolean;
  onInput?: (text: string) => void;
  focus?: boolean;
  among?: string[]; // what the browser offers to fill in
};

// Upload is a field for one file.
export const Upload = (p: {
  label: string;
  hint?: ComponentChildren;
  error?: string[] | undefined;
  onPick: (file: File | undefined) => void;
}) => (
  <Field label={p.label} hint={p.hint} error={p.error}>
    {(id, by) => (
      <input
        id={id}
        type="file"
        aria-describedby={by}
        aria-invalid={!!by}
        onChange={(e) => p.onPick(e.currentTarget.files?.[0])}
      />
    )}
  </Field>
);

// Text is a field for a text, of several lines where rows is given. A password is never
// filled in by the browser.
export function Text(p: TextProps) {
  return (
    <Field label={p.label} hint={p.hint} error={p.wrong(p.field ?? p.name)}>
      {(id, by) => {
        const all = {
          id,
          name: p.name,
          "data-field": p.field,
          placeholder: p.place,
          required: p.need,
          "aria-describedby": by,
          "aria-invalid": !!by,
          autoFocus: p.focus,
        };
        const type = p.onInput
          ? (e: { currentTarget: { value: string } }) => p.onInput!(e.currentTarget.value)
          : undefined;
        return p.rows ? (
          <textarea
            {...all}
            rows={p.rows}
            class={p.code ? "code" : undefined}
            spellcheck={!p.code}
            defaultValue={p.value ?? ""}
            onInput={type}
          />
        ) : (
          <>
            <input
              {...all}
              {...({ type: p.type ?? "text" } as { type: "text" })}
              defaultValue={p.value ?? ""}
              onInput={type}
              autocomplete={p.type === "password" ? "new-password" : "off"}
              inputMode={p.decimal ? "decimal" : undefined}
              list={p.among && id + "all"}
            />
            {p.among && (
              <datalist id={id + "all"}>
                {p.among.map((t) => (
                  <option key={t} value={t} />
                ))}
              </datalist>
            )}
          </>
        );
      }}
    </Field>
  );
}

// Choice is a field for one of several values; a pair is a value and what it is called.
export function Choice(p: {
  name: string;
  label: string;
  hint?: ComponentChildren;
  wrong: Wrong;
  field?: string;
  value?: string | null | undefined;
  all: readonly (string | readonly [string, string])[];
  onPick?: (v: string) => void;
}) {
  return (
    <Field label={p.label} hint={p.hint} error={p.wrong(p.field ?? p.name)}>
      {(id, by) => (
        <select
          id={id}
          name={p.name}
          data-field={p.field}
          aria-describedby={by}
          aria-invalid={!!by}
          onChange={p.onPick ? (e) => p.onPick!(e.currentTarget.value) : undefined}
        >
          {p.all.map((o) => {
            const [v, name] = typeof o === "string" ? [o, words(o)] : o;
            return (
              <option key={v} value={v} {...({ defaultSelected: v === (p.value ?? "") } as object)}>
                {name}
              </option>
            );
          })}
        </select>
      )}
    </Field>
  );
}

// Switch is a box to tick.
export function Switch(p: { name: string; on?: boolean; value?: string; children?: ComponentChildren }) {
  return (
    <label class="check">
      <input type="checkbox" name={p.name} value={p.value ?? "on"} defaultChecked={p.on} /> <span>{p.children}</span>
    </label>
  );
}

// Once shows a secret that nobody can ask for again, until it is put away.
export function Once(p: { name: string; text: string; kept: () => void; children?: ComponentChildren }) {
  const [seen, see] = useState(false);
  return (
    <section class="once" aria-label={p.name}>
      <p>
        <strong>{p.name}</strong> It is shown this once.
      </p>
      <p class="secret">
        <code>{p.text}</code>
      </p>
      {p.children}
      <div class="acts">
        <button
          type="button"
          onClick={() => {
            copy(p.text);
            see(true);
          }}
        >
          Copy
        </button>
        <button type="button" class={seen ? "main" : undefined} onClick={p.kept}>
          I have kept it
        </button>
      </div>
    </section>
  );
}

// Cards are rows that say more than a line holds.
export function Cards<R extends { id: string }>(p: {
  list: List<R>;
  label: string;
  empty: ComponentChildren;
  fits?: (row: R) => boolean;
  row: (row: R) => ComponentChildren;
}) {
  const l = p.list;
  if (l.state.value === "loading") return <Loading />;
  if (l.state.value === "failed") return <Trouble error={new Error(l.error.value)} again={() => void l.load()} />;
  const rows = [...l.fresh.value, ...l.ids.value]
    .map((id) => l.rows.get(id)?.value)
    .filter((r): r is R => !!r && (!p.fits || p.fits(r)));
  return (
    <>
      {l.error.value && (
        <p class="trouble" role="alert">
          {l.error.value}
        </p>
      )}
      {rows.length === 0 ? (
        <Empty>{p.empty}</Empty>
      ) : (
        <ul class="cards" aria-label={p.label}>
          {rows.map((r) => (
            <li key={r.id} class="item" data-id={r.id}>
              {p.row(r)}
            </li>
          ))}
        </ul>
      )}
      <More of={l} />
    </>
  );
}
