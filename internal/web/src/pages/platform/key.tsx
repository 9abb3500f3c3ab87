// The operator's key: for what changes the platform. It is asked for with the password,
// kept in the memory of this tab for an hour, and can be given back.
import { useEffect, useState } from "preact/hooks";
import { operatorKey, Problem } from "../../api";
import { proven } from "../../cards/reauth";
import { operatorTokenIssue, tokenRevoke } from "../../client.gen";
import { Dialog } from "../../ui/dialog";
import { Form } from "../../ui/form";
import { gate } from "../../ui/gate";
import { Text } from "../../ui/inputs";
import { Act } from "../../ui/parts";
import { span } from "../../ui/time";

const scopes = ["admin:goals", "admin:grants", "admin:users", "admin:accounts"];
// issue proves who is there and asks for the key.
const issue = proven(operatorTokenIssue);

export function OperatorKey() {
  const [asking, ask] = useState(false),
    [, tick] = useState(0),
    k = operatorKey.value,
    left = k ? Math.round((k.ends - Date.now()) / 1000) : 0;
  useEffect(() => {
    if (!k) return;
    const t = setInterval(() => {
      if (k.ends < Date.now()) operatorKey.value = undefined;
      else tick((n) => n + 1);
    }, 10_000);
    return () => clearInterval(t);
  }, [k]);
  return (
    <>
      {k && left > 0 ? (
        <span class="tools">
          <span class="dim">Operator's key, for {span(left).trim()}</span>
          <Act
            call={tokenRevoke}
            input={{ id: k.id }}
            done={() => {
              operatorKey.value = undefined;
              return "Given back.";
            }}
          >
            Give it back
          </Act>
        </span>
      ) : (
        <button type="button" {...gate(operatorTokenIssue, () => ask(true))}>
          Operator's key
        </button>
      )}
      {asking && (
        <Dialog title="Operator's key" close={() => ask(false)}>
          <p>What changes the platform asks for a key of an hour. It stays in this tab's memory.</p>
          <Form
            call={issue}
            submit="Get the key"
            read={(f) => ({ name: "dashboard", scopes, password: String(f.get("password") ?? "") })}
            done={(o) => {
              operatorKey.value = {
                id: o.id,
                token: o.token,
                scopes: o.scopes,
                ends: o.expires_iso ? Date.parse(o.expires_iso) : Date.now() + 3_600_000,
              };
              ask(false);
            }}
          >
            {(wrong) => (
              <Text
                name="password"
                label="Your password"
                hint="or a code mailed to you"
                wrong={wrong}
                type="password"
                focus
              />
            )}
          </Form>
        </Dialog>
      )}
    </>
  );
}

// typed fails unless a form's field repeats the name of what is to be changed.
export function typed(f: FormData, name: string): true {
  if (String(f.get("sure") ?? "").trim() !== name)
    throw new Problem(
      0,
      "not-sure",
      { detail: `Type ${name} to say that you mean it.`, errors: { sure: [`must be ${name}`] } },
      0,
    );
  return true;
}

export function Sure(p: { name: string; wrong: (f: string) => string[] | undefined }) {
  return <Text name="sure" label={`Type ${p.name} to confirm`} wrong={p.wrong} />;
}
