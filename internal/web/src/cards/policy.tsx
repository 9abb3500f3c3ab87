// The policy of a repository: what is in force, and a place to try another one.
import { useEffect, useState } from "preact/hooks";
import { said } from "../api";
import { projectPolicyGet, projectPolicyValidate, type Clamp, type PolicyVerdict } from "../client.gen";
import { useOne } from "../list";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { Coming, copy } from "../ui/parts";
import { Status } from "../ui/status";

// flat is a policy as dotted names and values.
export function flat(v: unknown, name = ""): [string, string][] {
  if (v !== null && typeof v === "object" && !Array.isArray(v))
    return Object.entries(v).flatMap(([k, x]) => flat(x, name ? name + "." + k : k));
  return [[name, v === null ? "none" : typeof v === "string" ? v || "empty" : JSON.stringify(v)]];
}

export function Clamps(p: { all: Clamp[] }) {
  return (
    <>
      {p.all.map((c) => (
        <p key={c.field} class="hold">
          <code>{c.field}</code> asks for {inert(c.asked)}; the account allows {inert(c.given)}.
        </p>
      ))}
    </>
  );
}

// Policy shows what is in force, and an editor that asks the server while one types.
export function Policy(p: { at: { owner: string; repo: string } }) {
  const one = useOne("policy", (signal) => projectPolicyGet(p.at, { signal })),
    v = one.value.value;
  const [text, setText] = useState<string>(),
    [verdict, setVerdict] = useState<PolicyVerdict>(),
    [failed, setFailed] = useState("");
  useEffect(() => {
    if (text === undefined || !may(projectPolicyValidate)) return;
    const off = new AbortController();
    const timer = setTimeout(() => {
      projectPolicyValidate({ ...p.at, yml: text }, { signal: off.signal }).then(
        (x) => {
          setVerdict(x);
          setFailed("");
        },
        (e) => {
          if (!off.signal.aborted) setFailed(said(e));
        },
      );
    }, 400);
    return () => {
      clearTimeout(timer);
      off.abort();
    };
  }, [text]);
  if (!v) return <Coming of={one} />;
  return (
    <>
      {v.fallback && <p class="hold">The defaults are in force: {inert(v.fallback)}</p>}
      <Clamps all={v.clamped} />
      <h2>Try a policy file</h2>
      <p class="dim">
        It is checked as you type and stored nowhere: a commit of <code>.svc/policy.yml</code> to the default branch
        changes the policy.
      </p>
      <textarea
        class="code"
        rows={16}
        aria-label="Policy file"
        spellcheck={false}
        value={text ?? v.yml ?? "version: 1\n"}
        onInput={(e) => setText(e.currentTarget.value)}
      />
      <div class="verdict" role="status">
        {failed ? (
          <p class="trouble">{failed}</p>
        ) : (
          verdict &&
          (verdict.ok ? (
            <p>
              <Status of="valid" />
            </p>
          ) : (
            <div class="trouble">
              {verdict.errors.map((e, i) => (
                <p key={i}>{inert(e)}</p>
              ))}
            </div>
          ))
        )}
        {verdict && <Clamps all={verdict.clamped} />}
      </div>
      <div class="acts">
        <button
          type="button"
          onClick={() => {
            setText(undefined);
            setVerdict(undefined);
          }}
        >
          As it is
        </button>
        <button type="button" onClick={() => copy(text ?? v.yml ?? "version: 1\n")}>
          Copy
        </button>
      </div>
      <h2>In force</h2>
      <div class="scroll" tabIndex={0}>
        <table class="bars">
          <tbody>
            {flat(v.policy).map(([k, x]) => (
              <tr key={k}>
                <th scope="row">
                  <code>{k}</code>
                </th>
                <td>{inert(x)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
