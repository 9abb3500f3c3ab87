// How people sign in here: whether this server sends mail, and one's own password.
import { useEffect } from "preact/hooks";
import { signal } from "@preact/signals";
import { op } from "../api";
import { useOne } from "../list";
import { me } from "../session";
import { Form } from "../ui/form";
import { Text } from "../ui/inputs";
import { Act, Code, Coming } from "../ui/parts";

type Refused = "sso-session" | "reauth-required";
type Back = { password: boolean; email: boolean; provider: boolean; refused: Refused | null };

const refusals: Record<Refused, string> = {
  "sso-session": "This session was opened by the identity provider of an account, and sets no password.",
  "reauth-required": "A first password is set within an hour of signing in. Sign out and in again to set one.",
};
const methods = op<object, { methods: string[] }>("auth.methods", "GET", "/auth/methods", "", []);
const ways = op<object, Back>("auth.ways", "GET", "/auth/ways", "read:account", []);
const setPassword = op<{ password_now?: string; password: string }, Back>(
  "auth.password_set",
  "POST",
  "/auth/password/set",
  "read:account",
  [],
);

const forgotten = op<{ email: string }, { expires_in: number }>(
  "auth.password_forgotten",
  "POST",
  "/auth/password/forgotten",
  "",
  [],
);

const sends = signal<boolean | undefined>(undefined);

// useMailed tells whether this server sends mail, as soon as it is known.
export function useMailed(): boolean | undefined {
  useEffect(() => {
    void methods({}).then(
      (m) => {
        sends.value = m.methods.includes("email");
      },
      () => undefined,
    );
  }, []);
  return sends.value;
}

// Sent says what became of the mail of an invitation.
export function Sent(p: { to: string }) {
  const mailed = useMailed();
  return mailed === undefined ? null : mailed ? (
    <p class="dim">It was mailed to {p.to}.</p>
  ) : (
    <>
      <p class="dim">
        This server sends no mail: send the link to {p.to} yourself. It asks for a code; whoever runs the server finds
        the code on it, once it was asked for, with
      </p>
      <p>
        <Code text={/^[\w.%+@-]+$/.test(p.to) ? "yardmaster mail " + p.to : "yardmaster mail"} />
      </p>
    </>
  );
}

// Password sets the password of who is signed in.
export function Password() {
  const one = useOne("ways", (signal) => ways({}, { signal })),
    w = one.value.value;
  return (
    <>
      <h2>Password</h2>
      {!w ? (
        <Coming of={one} />
      ) : (
        <>
          <p class={w.password || w.email || w.provider ? "dim" : "trouble"}>
            {w.password
              ? "You have one. Another one ends your other sessions."
              : w.email || w.provider
                ? "You have none, and sign in otherwise."
                : "You have none, and this server sends no mail: without one you cannot sign in again by yourself."}
          </p>
          {w.refused && <p class="hold">{refusals[w.refused]}</p>}
          {!w.refused && (
            <Form
              call={setPassword}
              submit={w.password ? "Change it" : "Set it"}
              said="It holds from the next sign-in on."
              done={(b) => one.merge(b)}
              read={(f) => ({
                ...(w.password && { password_now: String(f.get("password_now") ?? "") }),
                password: String(f.get("password") ?? ""),
              })}
            >
              {(wrong) => (
                <>
                  {w.password && <Text name="password_now" label="Password until now" wrong={wrong} type="password" />}
                  <Text
                    name="password"
                    label="New password"
                    hint="at least 10 characters"
                    wrong={wrong}
                    type="password"
                  />
                </>
              )}
            </Form>
          )}
          {w.password && me.value?.user?.email && (
            <Act
              call={forgotten}
              input={{ email: me.value.user.email }}
              done="A link to a new password was mailed; where the server sends no mail, whoever runs it finds it there."
            >
              Forgotten the password
            </Act>
          )}
        </>
      )}
    </>
  );
}
