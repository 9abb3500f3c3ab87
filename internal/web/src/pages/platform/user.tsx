// One person as the operator sees them.
import { useState } from "preact/hooks";
import {
  accountUserGet,
  userApproveById,
  userPasswordLink,
  userSuspendById,
  type PasswordLink,
  type PlatformUserDetail,
} from "../../client.gen";
import { proven } from "../../cards/reauth";
import { Grants } from "../../cards/grants";
import { useOne } from "../../list";
import type { PageProps } from "../../route";
import { inert } from "../../ui/ansi";
import { Dialog } from "../../ui/dialog";
import { Form } from "../../ui/form";
import { gate } from "../../ui/gate";
import { of, Once, Text } from "../../ui/inputs";
import { Coming, Empty, Fact, Facts, Head, Id } from "../../ui/parts";
import { Raw } from "../../ui/raw";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";
import { OperatorKey, Sure, typed } from "./key";

const passwordLink = proven(userPasswordLink);

export default function PlatformUserPage(p: PageProps) {
  const id = p.params.id!,
    one = useOne<PlatformUserDetail>(id, (signal) => accountUserGet({ id }, { signal })),
    u = one.value.value,
    [asking, sure] = useState(false),
    [helping, help] = useState(false),
    [link, made] = useState<PasswordLink>(),
    again = () => void one.load(),
    shut = () => {
      help(false);
      made(undefined);
    };
  if (!u)
    return (
      <>
        <Head title="User" />
        <Coming of={one} />
      </>
    );
  return (
    <>
      <Head title={inert(u.login)}>
        <Status of={u.approved ? "approved" : "waiting"} say={u.approved ? "let in" : "on the waitlist"} />
        {u.platform_admin && <span class="dim">operator</span>}
        <span class="grow" />
        <OperatorKey />
        {!u.platform_admin && (
          <button type="button" {...gate(userPasswordLink, () => help(true))}>
            New password
          </button>
        )}
        {u.approved ? (
          <button type="button" {...gate(userSuspendById, () => sure(true))}>
            Suspend
          </button>
        ) : (
          <button type="button" class="main" {...gate(userApproveById, () => sure(true))}>
            Let in
          </button>
        )}
      </Head>
      {asking && (
        <Dialog title={u.approved ? "Suspend" : "Let in"} close={() => sure(false)}>
          <p>
            {u.approved
              ? "They go back to the waitlist. What they hold is worth next to nothing from then on."
              : "They may use the platform from then on, and are told."}
          </p>
          <Form
            call={u.approved ? userSuspendById : userApproveById}
            submit={u.approved ? "Suspend" : "Let in"}
            said={u.approved ? "On the waitlist." : "Let in."}
            done={() => {
              sure(false);
              again();
            }}
            read={(f) => {
              typed(f, u.login);
              return { userId: id };
            }}
          >
            {(wrong) => <Sure name={u.login} wrong={wrong} />}
          </Form>
        </Dialog>
      )}
      {helping && (
        <Dialog title="New password" close={shut}>
          {link ? (
            <Once name={`A link to a new password of ${u.login}.`} text={link.link} kept={shut} />
          ) : (
            <Form
              call={passwordLink}
              submit="Make a link"
              keep
              done={made}
              read={(f) => ({ userId: id, password: of(f, "password") ?? "" })}
            >
              {(wrong) => (
                <>
                  <p>
                    Whoever opens the link within an hour sets a new password of theirs, once. They are told by mail.
                  </p>
                  <Text name="password" label="Your own password" wrong={wrong} type="password" focus />
                </>
              )}
            </Form>
          )}
        </Dialog>
      )}
      <Facts>
        <Fact name="Name">{inert(u.name) || "–"}</Fact>
        <Fact name="E-mail">{inert(u.email)}</Fact>
        <Fact name="Last active">
          <Time at={u.last_active_at} />
        </Fact>
        <Fact name="Since">
          <Time at={u.created_at} />
        </Fact>
        <Fact name="Id">
          <Id of={u.id} />
        </Fact>
      </Facts>
      <h2>Accounts</h2>
      {u.orgs.length === 0 ? (
        <Empty>None.</Empty>
      ) : (
        <ul class="cards" aria-label="Accounts">
          {u.orgs.map((o) => (
            <li key={o.account_id} class="item">
              <p>
                <a href={"/ui/platform/accounts/" + o.account_id}>{inert(o.login)}</a> <span class="dim">{o.role}</span>
              </p>
            </li>
          ))}
        </ul>
      )}
      <h2>Grants</h2>
      <Grants to={{ user_id: id }} name={u.login} />
      <Raw call={accountUserGet} input={{ id }} of={u} />
    </>
  );
}
