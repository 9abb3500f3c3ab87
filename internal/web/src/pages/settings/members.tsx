// Members: who belongs to the account, as what, and who is invited.
import { useState } from "preact/hooks";
import { said } from "../../api";
import {
  memberInvite,
  memberList,
  memberListInvitations,
  memberRemove,
  memberRevokeInvitation,
  memberSetRole,
  type Invitation,
  type OrgMember,
} from "../../client.gen";
import { Sent } from "../../cards/signin";
import { Withdraw } from "../../cards/withdraw";
import { useList } from "../../list";
import { may, me } from "../../session";
import { useFresh } from "../../ui/every";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { lack } from "../../ui/gate";
import { Cards, Choice, of, Once, Text } from "../../ui/inputs";
import { Act, ask, Head } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";
import { tell } from "../../ui/toast";

type Role = OrgMember["role"];
export const roles = ["viewer", "member", "admin", "owner"] as const;
export const does: Record<Role, string> = {
  viewer: "sees everything but money",
  member: "files work, decides, answers",
  admin: "sets up repositories, boxes, people, secrets",
  owner: "also pays: keys and budgets",
};

export default function Members() {
  const list = useList<OrgMember & { id: string }>("members", async (_, signal) => ({
    data: (await memberList({}, { signal })).data.map((m) => ({ ...m, id: m.user_id })),
  }));
  const invited = useList<Invitation>("invitations", (cursor, signal) =>
      memberListInvitations({ cursor, per_page: 50 }, { signal }),
    ),
    [link, setLink] = useState({ text: "", to: "" });
  useFresh(30, list, invited);
  const again = () => {
    void list.load();
    void invited.load();
  };
  return (
    <>
      <Head title="Members" count={list.count} />
      {link.text && (
        <Once name="Link of the invitation" text={link.text} kept={() => setLink({ text: "", to: "" })}>
          <Sent to={link.to} />
          <p class="dim">Whoever signs in with that address and opens it becomes a member, for 7 days.</p>
        </Once>
      )}
      <Cards
        list={list}
        label="Members"
        empty="Nobody."
        row={(m) => (
          <>
            <div>
              <p>
                <strong>{inert(m.login)}</strong> {m.name && m.name !== m.login && inert(m.name)}{" "}
                {m.user_id === me.value?.user?.id && <span class="dim">(you)</span>}
              </p>
              <p class="dim">
                {does[m.role]} · since <Time at={m.joined_at} suffix={false} />
              </p>
            </div>
            <div class="acts">
              <Role of={m} changed={again} />
              <Act
                call={memberRemove}
                input={{ userId: m.user_id }}
                confirm={`Remove ${m.login}? Their sessions and tokens of this account stop at once; what they filed stays.`}
                done={() => {
                  again();
                  return "Removed.";
                }}
              >
                Remove
              </Act>
            </div>
          </>
        )}
      />
      <h2>Invite</h2>
      <Form
        call={memberInvite}
        submit="Invite"
        read={(f) => {
          const who = of(f, "who") ?? "",
            role = of(f, "role") as Role;
          return who.includes("@") ? { email: who, role } : { login: who, role };
        }}
        done={(o) => {
          if (o.link) setLink({ text: o.link, to: o.invitation?.email ?? "" });
          else
            tell(
              o.member ? "They are a member now." : "Invited, if anybody has that login. They see it here, and accept.",
            );
          again();
        }}
      >
        {(wrong) => (
          <>
            <Text
              name="who"
              label="E-mail, or login of somebody known here"
              wrong={(x) => wrong("email") ?? wrong("login") ?? wrong(x)}
              need
            />
            <Choice
              name="role"
              label="Role"
              wrong={wrong}
              value="member"
              all={roles.map((r) => [r, `${r}: ${does[r]}`] as const)}
            />
          </>
        )}
      </Form>
      <h2>Invitations</h2>
      <Cards
        list={invited}
        label="Invitations"
        empty="Nobody is invited."
        row={(i) => (
          <>
            <div>
              <p>
                {inert(i.email ?? i.login ?? "")} <span class="dim">as {i.role}</span>
              </p>
              <p class="dim">
                invited <Time at={i.created_at} />
                {i.status === "pending" && (
                  <>
                    , ends <Time at={i.expires_at} />
                  </>
                )}
              </p>
            </div>
            <div class="acts">
              <Status of={i.status} />
              {i.status === "pending" && <Withdraw call={memberRevokeInvitation} id={i.id} done={again} />}
            </div>
          </>
        )}
      />
    </>
  );
}

function Role(p: { of: OrgMember; changed: () => void }) {
  const m = p.of;
  if (!may(memberSetRole)) return <span title={lack(memberSetRole)}>{m.role}</span>;
  const set = async (e: { currentTarget: HTMLSelectElement }) => {
    const el = e.currentTarget,
      role = el.value as Role;
    if (!(await ask(`Make ${m.login} ${role}, who ${does[role]}? It holds from their next request on.`))) {
      el.value = m.role;
      return;
    }
    memberSetRole({ userId: m.user_id, role }).then(
      () => {
        tell("Changed.");
        p.changed();
      },
      (x) => {
        el.value = m.role;
        tell(said(x));
      },
    );
  };
  return (
    <select aria-label={"Role of " + m.login} value={m.role} onChange={set}>
      {roles.map((r) => (
        <option key={r} value={r}>
          {r}
        </option>
      ))}
    </select>
  );
}
