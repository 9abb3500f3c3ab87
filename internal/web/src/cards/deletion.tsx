// The deletion of the account: an owner asks for it, and any owner takes it back until it begins.
import { Problem, type Call } from "../api";
import { accountDeletionAsk, accountDeletionTakeBack, type AccountDeletionAskInput } from "../client.gen";
import { load, me } from "../session";
import { Form } from "../ui/form";
import { of, Text } from "../ui/inputs";
import { Act } from "../ui/parts";
import { Time } from "../ui/time";
import { useState } from "preact/hooks";
import { proven } from "./reauth";

export function DeleteAccount() {
  const [prove, setProve] = useState(false); // whether the session is too old
  const account = me.value?.account,
    asked = account?.deletion;
  if (account?.role !== "owner") return null;
  if (asked)
    return (
      <>
        <h2>Deletion</h2>
        {asked.begun_at ? (
          <p>
            The account is being deleted, since <Time at={asked.begun_at} />. {asked.failure}
          </p>
        ) : (
          <p>
            The account is going to be deleted <Time at={asked.ends_at} />. Until then any owner can take it back.{" "}
            <Act
              call={accountDeletionTakeBack}
              input={{}}
              done={() => {
                void load();
                return "Taken back: the account stays.";
              }}
            >
              Take it back
            </Act>
          </p>
        )}
      </>
    );
  const call = (prove ? proven(accountDeletionAsk) : accountDeletionAsk) as Call<
    AccountDeletionAskInput & { password?: string },
    unknown
  >;
  return (
    <>
      <h2>Deletion</h2>
      <p class="dim">
        Everything of the account is deleted: repositories, work, members who belong to no other account, boxes and
        subscriptions. All owners and admins are told, and any owner can take it back for some days. Who runs the server
        can give you an archive before.
      </p>
      <Form
        call={call}
        submit="Delete the account"
        said="It is asked for. All owners and admins are told."
        keep
        done={() => void load()}
        failed={(e) => {
          const old = e instanceof Problem && e.slug === "reauth-required" && !prove;
          if (old) setProve(true);
          return old;
        }}
        read={(f) => ({
          login: of(f, "login") ?? "",
          ...(prove && { password: String(f.get("password") ?? "") }),
        })}
      >
        {(wrong) => (
          <>
            <Text name="login" label="Login of the account" hint="as proof that it is meant" wrong={wrong} />
            {prove && (
              <>
                <p class="hold" role="status">
                  Whoever has an account deleted has signed in within the last hour. Show that it is you, and it goes
                  on.
                </p>
                <Text
                  name="password"
                  label="Your password"
                  hint="or the code of six digits from a mail"
                  wrong={wrong}
                  type="password"
                  focus
                />
              </>
            )}
          </>
        )}
      </Form>
    </>
  );
}
