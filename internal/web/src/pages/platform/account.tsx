// One account as its operator sees it: what it has, what it may do, who is in it.
import {
  accountBacklogImport,
  accountOrgGet,
  accountSetMemberRole,
  accountSetSeats,
  accountSetSpendCap,
  accountSetTier,
  type OrgDetail,
  type RosterMember,
} from "../../client.gen";
import { Budget } from "../../cards/cap";
import { Grants } from "../../cards/grants";
import { roles } from "../settings/members";
import { useOne } from "../../list";
import type { PageProps } from "../../route";
import { may } from "../../session";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { Choice, number, of, Text } from "../../ui/inputs";
import { usd } from "../../ui/money";
import { Coming, Fact, Facts, Head, Id } from "../../ui/parts";
import { Raw } from "../../ui/raw";
import { words } from "../../ui/status";
import { Time } from "../../ui/time";
import { OperatorKey, Sure, typed } from "./key";

export default function PlatformAccount(p: PageProps) {
  const id = p.params.id!,
    one = useOne<OrgDetail>(id, (signal) => accountOrgGet({ id }, { signal })),
    a = one.value.value,
    again = () => void one.load();
  if (!a)
    return (
      <>
        <Head title="Account" />
        <Coming of={one} />
      </>
    );
  const done = (o: OrgDetail) => {
    one.value.value = o;
  };
  return (
    <>
      <Head title={inert(a.login)}>
        <span class="dim">{a.kind}</span>
        <span class="grow" />
        <OperatorKey />
      </Head>
      <Facts>
        <Fact name="Tier">{words(a.tier)}</Fact>
        <Fact name="Billing">{a.billing ?? "–"}</Fact>
        <Fact name="Seats">
          {a.seats} paid, {a.free_devs} free
        </Fact>
        <Fact name="Spend cap">{a.spend_cap_usd === null ? "the default" : usd(a.spend_cap_usd)}</Fact>
        <Fact name="Members">{a.members}</Fact>
        <Fact name="Repositories">{a.repos}</Fact>
        <Fact name="Boxes">{a.boxes}</Fact>
        <Fact name="Open tasks">{a.tasks_open}</Fact>
        <Fact name="Since">
          <Time at={a.created_at} />
        </Fact>
        <Fact name="Id">
          <Id of={a.id} />
        </Fact>
      </Facts>
      {!may(accountSetTier) && <p class="hold">To change something, get an operator's key first.</p>}
      <h2>Members</h2>
      <ul class="cards" aria-label="Members">
        {a.roster.map((m: RosterMember) => (
          <li key={m.user_id} class="item">
            <div>
              <p>
                <a href={"/ui/platform/users/" + m.user_id}>{inert(m.login)}</a> {inert(m.name)}
              </p>
            </div>
            <Form
              call={accountSetMemberRole}
              submit="Set"
              said="Set. It stands in their audit log."
              keep
              class="tools"
              done={again}
              read={(f) => {
                typed(f, a.login);
                return { id, userId: m.user_id, role: of(f, "role") as "member" };
              }}
            >
              {(wrong) => (
                <>
                  <select name="role" aria-label={"Role of " + m.login} defaultValue={m.role}>
                    {roles.map((r) => (
                      <option key={r} value={r} selected={r === m.role}>
                        {r}
                      </option>
                    ))}
                  </select>
                  <Sure name={a.login} wrong={wrong} />
                </>
              )}
            </Form>
          </li>
        ))}
      </ul>
      <h2>Tier</h2>
      <Form
        call={accountSetTier}
        submit="Set the tier"
        said="Set."
        keep
        done={done}
        read={(f) => ({ id, tier: of(f, "tier") as "free", confirm: typed(f, a.login) })}
      >
        {(wrong) => (
          <>
            <Choice
              name="tier"
              label="Tier"
              wrong={wrong}
              value={a.tier}
              all={["free", "team", "self_hosted", "oss_verified"]}
            />
            <Sure name={a.login} wrong={wrong} />
          </>
        )}
      </Form>
      <h2>Seats</h2>
      <Form
        call={accountSetSeats}
        submit="Set the seats"
        said="Set."
        keep
        done={done}
        read={(f) => ({ id, seats: number(f, "seats") ?? 0, confirm: typed(f, a.login) })}
      >
        {(wrong) => (
          <>
            <Text name="seats" label="Agents it pays for" wrong={wrong} value={a.seats} decimal />
            <Sure name={a.login} wrong={wrong} />
          </>
        )}
      </Form>
      <h2>Budget</h2>
      <Form
        call={accountSetSpendCap}
        submit="Set the budget"
        said="Set."
        keep
        done={done}
        read={(f) => ({ id, usd: number(f, "usd") ?? null, confirm: typed(f, a.login) })}
      >
        {(wrong) => (
          <>
            <Budget of="the account" none="the default" wrong={wrong} value={a.spend_cap_usd} />
            <Sure name={a.login} wrong={wrong} />
          </>
        )}
      </Form>
      <h2>Import a backlog</h2>
      <p class="dim">Each open issue of a repository that has no ask becomes one, in the account's name.</p>
      <Form
        call={accountBacklogImport}
        submit="Import"
        said="Queued."
        read={(f) => {
          const [owner, repo] = (of(f, "repo") ?? "/").split("/");
          return { id, owner: owner ?? "", repo: repo ?? "", confirm: typed(f, a.login) };
        }}
      >
        {(wrong) => (
          <>
            <Text name="repo" label="Repository" wrong={wrong} place="owner/name" />
            <Sure name={a.login} wrong={wrong} />
          </>
        )}
      </Form>
      <h2>Grants</h2>
      <Grants to={{ account_id: id }} name={a.login} />
      <Raw call={accountOrgGet} input={{ id }} of={a} />
    </>
  );
}
