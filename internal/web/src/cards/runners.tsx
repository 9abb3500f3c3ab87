// Boxes that take a person's work alone, or that they were asked to own; and where else.
import { useState } from "preact/hooks";
import { selfRunnerAgree, selfRunnerList, selfRunnerWithdraw, type RunnerAccount } from "../client.gen";
import { useOne } from "../list";
import { me } from "../session";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { of, Text } from "../ui/inputs";
import { Act } from "../ui/parts";
import { tell } from "../ui/toast";
import { proven } from "./reauth";
import { Actor } from "./who";

const agree = proven(selfRunnerAgree);

const stands = (a: RunnerAccount) =>
  a.works
    ? "takes your work"
    : a.agreed_at
      ? a.lets_in
        ? "you agreed before you left once: agree again"
        : "you agreed; its admins let no boxes from outside in"
      : "takes nothing of yours";

// Runners is nothing for whoever has no such box.
export function Runners() {
  const [at, ask] = useState<{ id: string; name: string; account: RunnerAccount }>();
  const one = useOne("runners", (signal) => selfRunnerList({ per_page: 100 }, { signal }), { topic: "runners" }),
    rows = one.value.value?.data ?? [];
  if (rows.length === 0) return null;
  return (
    <>
      <h2>Boxes that work for you</h2>
      <p class="dim">
        Such a box takes what you asked for in the account it belongs to, and elsewhere where you agree. Whoever runs it
        sees the code, the secrets and the tokens of that work.
      </p>
      <ul class="cards" aria-label="Boxes that work for you">
        {rows.flatMap((r) =>
          r.accounts.map((a) => (
            <li key={r.id + a.id} class="item">
              <div>
                <p>
                  <strong>{inert(r.name || r.id.slice(0, 8))}</strong> in {inert(a.login)}
                </p>
                <p class="dim">
                  {a.asked_by && !a.agreed_at ? (
                    <>
                      <Actor of={a.asked_by} /> asks you to own it
                    </>
                  ) : (
                    stands(a)
                  )}
                </p>
              </div>
              {me.value?.credential.kind === "session" && (
                <div class="acts">
                  {!a.works && (
                    <button type="button" onClick={() => ask({ id: r.id, name: r.name, account: a })}>
                      Agree…
                    </button>
                  )}
                  {(a.works || a.agreed_at || a.asked_by) && (
                    <Act
                      call={selfRunnerWithdraw}
                      input={{ id: r.id, account_id: a.id }}
                      done={() => {
                        void one.load();
                        return "It takes nothing of yours there.";
                      }}
                    >
                      {a.works || a.agreed_at ? "Take back" : "Decline"}
                    </Act>
                  )}
                </div>
              )}
            </li>
          )),
        )}
      </ul>
      {at && (
        <Dialog title="Agree" close={() => ask(undefined)}>
          <p>
            {inert(at.name)} takes what you asked for in {inert(at.account.login)}, with its code, secrets and tokens.
          </p>
          <Form
            call={agree}
            submit="Agree"
            keep
            read={(f) => ({ id: at.id, account_id: at.account.id, password: of(f, "password") ?? "" })}
            done={() => {
              ask(undefined);
              void one.load();
              tell("Agreed.");
            }}
          >
            {(wrong) => (
              <Text name="password" label="Password" hint="or a mailed code" wrong={wrong} type="password" focus />
            )}
          </Form>
        </Dialog>
      )}
    </>
  );
}
