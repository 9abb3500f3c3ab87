// Grants: free agents that an operator gave to an account or a person.
import { grantIssue, grantList, grantRevoke, type EntitlementGrant } from "../client.gen";
import { useList } from "../list";
import { inert } from "../ui/ansi";
import { Sure, typed } from "../pages/platform/key";
import { Form } from "../ui/form";
import { Cards, number, of, Text } from "../ui/inputs";
import { Act } from "../ui/parts";
import { Status } from "../ui/status";
import { Time } from "../ui/time";

// Grants asks for the name of who gets one.
export function Grants(p: { to: { account_id?: string; user_id?: string }; name: string }) {
  const list = useList<EntitlementGrant>("grants" + JSON.stringify(p.to), (cursor, signal) =>
      grantList({ ...p.to, cursor, per_page: 50 }, { signal }),
    ),
    again = () => void list.load();
  return (
    <>
      <Cards
        list={list}
        label="Grants"
        empty="It was given none."
        row={(g) => (
          <>
            <div>
              <p>
                <strong>
                  {g.ai_devs} {g.ai_devs === 1 ? "agent" : "agents"}
                </strong>{" "}
                <span class="dim">
                  <Time at={g.created_at} />
                  {g.expires_at && (
                    <>
                      , ends <Time at={g.expires_at} />
                    </>
                  )}
                </span>
              </p>
              <p>{inert(g.reason)}</p>
            </div>
            <div class="acts">
              <Status
                of={g.active ? "enabled" : g.revoked_at ? "revoked" : "expired"}
                say={g.active ? "active" : undefined}
              />
              {g.active && (
                <Act
                  call={grantRevoke}
                  input={{ id: g.id }}
                  confirm="Stop the grant? Runs that go on are not stopped."
                  done={() => {
                    again();
                    return "Stopped.";
                  }}
                >
                  Stop
                </Act>
              )}
            </div>
          </>
        )}
      />
      <Form
        call={grantIssue}
        submit="Grant"
        said="Given."
        done={again}
        read={(f) => {
          typed(f, p.name);
          return {
            ...p.to,
            ai_devs: number(f, "ai_devs") ?? 0,
            reason: of(f, "reason") ?? "",
            expires_in_days: number(f, "days") ?? null,
          };
        }}
      >
        {(wrong) => (
          <>
            <Text name="ai_devs" label="Agents" wrong={wrong} value={1} decimal />
            <Text
              name="days"
              label="For days"
              hint="empty: until it is stopped"
              wrong={wrong}
              field="expires_in_days"
              decimal
            />
            <Text name="reason" label="Why" hint="kept with the grant" wrong={wrong} />
            <Sure name={p.name} wrong={wrong} />
          </>
        )}
      </Form>
    </>
  );
}
