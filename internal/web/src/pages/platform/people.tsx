// Letting people in: applications, invitations, and bringing somebody in by address.
import { useState } from "preact/hooks";
import {
  accessRequestDecline,
  accessRequestInvite,
  accessRequestList,
  grantProvision,
  invitationList,
  invitationResend,
  invitationRevoke,
  type AccessRequest,
  type Invitation,
} from "../../client.gen";
import { Sent } from "../../cards/signin";
import { Withdraw } from "../../cards/withdraw";
import { useList } from "../../list";
import { query, setQuery } from "../../route";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { gate, keyless } from "../../ui/gate";
import { Cards, number, of, Once, Text } from "../../ui/inputs";
import { Act, Head, Search, Tabs } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";
import { tell } from "../../ui/toast";
import { OperatorKey } from "./key";

// Link is the address of an invitation, and whom it is for.
type Link = { text: string; to: string };

export default function People() {
  const tab = query().get("tab") ?? "requests",
    [link, setLink] = useState<Link>({ text: "", to: "" });
  return (
    <>
      <Head title="Requests">
        <Tabs
          label="Parts"
          all={["requests", "invitations", "provision"]}
          at={tab}
          to={(t) => setQuery({ tab: t === "requests" ? "" : t, q: "", show: "" })}
        />
        <span class="grow" />
        <OperatorKey />
      </Head>
      {link.text && (
        <Once name="Link of the invitation" text={link.text} kept={() => setLink({ text: "", to: "" })}>
          <Sent to={link.to} />
        </Once>
      )}
      {tab === "provision" ? (
        <Provision />
      ) : tab === "invitations" ? (
        <Invitations link={setLink} />
      ) : (
        <Requests link={setLink} />
      )}
    </>
  );
}

function Requests(p: { link: (l: Link) => void }) {
  const show = query().get("show") ?? "pending",
    q = query().get("q") ?? "",
    [open, set] = useState("");
  const list = useList<AccessRequest>(show + q, (cursor, signal) =>
      accessRequestList({ cursor, per_page: 50, q: q || undefined, filter: ["status:" + show] }, { signal }),
    ),
    again = () => void list.load();
  return (
    <>
      <div class="tools">
        <Tabs
          label="Show"
          all={["pending", "invited", "declined", "all"]}
          at={show}
          to={(s) => setQuery({ show: s === "pending" ? "" : s })}
        />
        <Search label="Filter requests" value={q} to={(t) => setQuery({ q: t })} />
      </div>
      <Cards
        list={list}
        label="Requests"
        empty={show === "pending" ? "Nobody waits." : "None."}
        row={(r) => (
          <>
            <div>
              <p>
                <strong>{inert(r.email)}</strong> {inert(r.name)} <span class="dim">{inert(r.org)}</span>
              </p>
              <p class="dim">
                <Time at={r.created_at} />
              </p>
              {open === r.id && (
                <Form
                  call={accessRequestInvite}
                  submit="Invite"
                  said="Invited."
                  done={(o) => {
                    p.link({ text: o.link, to: r.email });
                    set("");
                    again();
                  }}
                  read={(f) => ({ id: r.id, ai_devs: number(f, "ai_devs"), expires_in_days: number(f, "days") })}
                >
                  {(wrong) => (
                    <>
                      <Text name="ai_devs" label="Free agents" wrong={wrong} value={1} decimal />
                      <Text name="days" label="For days" wrong={wrong} field="expires_in_days" value={30} decimal />
                    </>
                  )}
                </Form>
              )}
              {open === "-" + r.id && (
                <Form
                  call={accessRequestDecline}
                  submit="Decline"
                  said="Declined. They are told nothing."
                  done={() => {
                    set("");
                    again();
                  }}
                  read={(f) => ({ id: r.id, reason: of(f, "reason") })}
                >
                  {(wrong) => <Text name="reason" label="Reason" hint="stays in the audit log" wrong={wrong} focus />}
                </Form>
              )}
            </div>
            <div class="acts">
              <Status
                of={r.status === "invited" ? "approved" : r.status === "declined" ? "withdrawn" : "waiting"}
                say={r.status}
              />
              {r.status === "pending" && (
                <>
                  <button type="button" {...gate(accessRequestDecline, () => set("-" + r.id), keyless)}>
                    Decline
                  </button>
                  <button type="button" class="main" {...gate(accessRequestInvite, () => set(r.id), keyless)}>
                    Invite
                  </button>
                </>
              )}
            </div>
          </>
        )}
      />
    </>
  );
}

function Invitations(p: { link: (l: Link) => void }) {
  const show = query().get("show") ?? "pending",
    q = query().get("q") ?? "";
  const list = useList<Invitation>(show + q, (cursor, signal) =>
      invitationList({ cursor, per_page: 50, q: q || undefined, filter: ["status:" + show] }, { signal }),
    ),
    again = () => void list.load();
  return (
    <>
      <div class="tools">
        <Tabs
          label="Show"
          all={["pending", "accepted", "expired", "revoked", "all"]}
          at={show}
          to={(s) => setQuery({ show: s === "pending" ? "" : s })}
        />
        <Search label="Filter invitations" value={q} to={(t) => setQuery({ q: t })} />
      </div>
      <Cards
        list={list}
        label="Invitations"
        empty="None."
        row={(i) => (
          <>
            <div>
              <p>{inert(i.email ?? "")}</p>
              <p class="dim">
                sent <Time at={i.created_at} />, ends <Time at={i.expires_at} />
              </p>
            </div>
            <div class="acts">
              <Status of={i.status} />
              {(i.status === "pending" || i.status === "expired") && (
                <Act
                  call={invitationResend}
                  input={{ invitationId: i.id }}
                  confirm="Mail a new link? The old one dies."
                  done={(o) => {
                    p.link({ text: o.link, to: i.email ?? "" });
                    again();
                    return "Sent anew.";
                  }}
                >
                  Send anew
                </Act>
              )}
              {i.status === "pending" && <Withdraw call={invitationRevoke} id={i.id} done={again} />}
            </div>
          </>
        )}
      />
    </>
  );
}

function Provision() {
  return (
    <>
      <p class="dim">
        Somebody new is invited, somebody known is let through the gate, and both get agents for free. Doing it again
        repeats nothing.
      </p>
      <Form
        call={grantProvision}
        submit="Bring them in"
        read={(f) => ({
          email: of(f, "email") ?? "",
          ai_devs: number(f, "ai_devs"),
          expires_in_days: number(f, "days") ?? null,
          reason: of(f, "reason") ?? "",
        })}
        done={(o) =>
          tell(
            [o.invited && "Invited.", o.approved && "Let in.", o.granted && "Given agents."]
              .filter(Boolean)
              .join(" ") || "All of it was done before.",
          )
        }
      >
        {(wrong) => (
          <>
            <Text name="email" label="E-mail" wrong={wrong} type="email" />
            <Text name="ai_devs" label="Free agents" wrong={wrong} value={1} decimal />
            <Text
              name="days"
              label="For days"
              hint="empty: until it is stopped"
              wrong={wrong}
              field="expires_in_days"
              decimal
            />
            <Text name="reason" label="Why" wrong={wrong} />
          </>
        )}
      </Form>
    </>
  );
}
