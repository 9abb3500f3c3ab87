// Any capability, called by hand: its arguments as fields, its body and answer as data.
import { useEffect, useState } from "preact/hooks";
import { caller, calls, type Callable } from "../calls";
import { query, type PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Text } from "../ui/inputs";
import { pieces } from "../ui/markdown";
import { Code, Empty, Fact, Facts, Head, Loading, Trouble } from "../ui/parts";

type Input = Record<string, unknown>;

export default function CallPage(p: PageProps) {
  const id = p.params["id"]!,
    [all, set] = useState<Callable[]>(),
    [error, setError] = useState<unknown>();
  const load = () => {
    setError(undefined);
    calls().then(set, setError);
  };
  useEffect(load, []);
  const c = all?.find((x) => x.id === id);
  return (
    <>
      <Head title={c?.summary ?? "Call a capability"} />
      {error ? (
        <Trouble error={error} again={load} />
      ) : !all ? (
        <Loading />
      ) : c ? (
        <One key={id} of={c} />
      ) : (
        <Empty>
          There is no capability {inert(id)}, or it is a stream. <a href="/docs">See which there are</a>.
        </Empty>
      )}
    </>
  );
}

function One({ of: c }: { of: Callable }) {
  const [made] = useState(() => caller(c)),
    [sent, setSent] = useState<Input>({}),
    [got, setGot] = useState<{ out: unknown }>(),
    [error, setError] = useState<unknown>();
  useEffect(() => {
    // what asks and needs no more is asked at once
    if (c.method === "GET" && !c.args.some((a) => a.need)) made({}).then((out) => setGot({ out }), setError);
  }, []);
  const read = (f: FormData): Input => {
    const input: Input = {};
    for (const a of c.args) {
      const text = String(f.get(a.name) ?? "").trim();
      if (text || a.in === "path")
        input[a.name] = a.many
          ? text
              .split(";")
              .map((s) => s.trim())
              .filter(Boolean)
          : text;
    }
    if (c.body) {
      let body: unknown;
      try {
        body = JSON.parse(String(f.get("body") ?? "") || "{}");
      } catch (e) {
        throw new Error("The body is no JSON: " + (e as Error).message);
      }
      if (typeof body !== "object" || body === null || Array.isArray(body))
        throw new Error("The body must be an object.");
      Object.assign(input, body);
    }
    setSent(input);
    setError(undefined);
    return input;
  };
  const word = (v: unknown) => {
    const s = typeof v === "string" ? v : JSON.stringify(v);
    return /^[\w./:@,+-]+$/.test(s) ? s : "'" + s.replaceAll("'", "'\\''") + "'";
  };
  return (
    <>
      <Facts>
        <Fact name="Capability">
          <code>{c.id}</code>
        </Fact>
        <Fact name="Request">
          <code>
            {c.method} {c.path}
          </code>
        </Fact>
        <Fact name="Scope">{c.scope}</Fact>
        <Fact name="Described">
          <a href={"/docs#" + c.id} target="_blank" rel="noopener">
            in the reference
          </a>
        </Fact>
      </Facts>
      <Form call={made} submit={"Call " + c.id} keep read={read} done={(out) => setGot({ out })}>
        {(wrong) => (
          <>
            {c.args.map((a) => (
              <Text
                key={a.name}
                name={a.name}
                label={a.name + (a.need ? "" : " (optional)")}
                hint={
                  <>
                    {pieces(a.doc)}
                    {a.many && "; several with semicolons between"}
                  </>
                }
                wrong={wrong}
                value={query().get(a.name)}
                need={a.need}
              />
            ))}
            {c.body && (
              <Text
                name="body"
                label="Body"
                hint={c.members.length > 0 && <>as JSON; also {c.members.join(", ")}</>}
                wrong={wrong}
                value={JSON.stringify(c.body, null, 2)}
                rows={8}
                code
              />
            )}
          </>
        )}
      </Form>
      {error ? (
        <Trouble error={error} />
      ) : (
        got && (
          <section aria-label="Answer" aria-live="polite">
            <h2>Answer</h2>
            <p class="scroll" tabIndex={0}>
              <Code
                text={
                  `yardmaster call ${c.id}` +
                  Object.entries(sent)
                    .map(([k, v]) => ` ${k}=${word(v)}`)
                    .join("")
                }
              />
            </p>
            <pre class="raw" tabIndex={0}>
              {inert(JSON.stringify(got.out, null, 2))}
            </pre>
          </section>
        )
      )}
    </>
  );
}
