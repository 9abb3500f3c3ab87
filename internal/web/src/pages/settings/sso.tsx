// Sign-in: the account's own identity provider.
import { orgSsoDelete, orgSsoGet, orgSsoSet } from "../../client.gen";
import { useOne } from "../../list";
import { useEvery } from "../../ui/every";
import { Form } from "../../ui/form";
import { Choice, lines, of, Text } from "../../ui/inputs";
import { Act, Code, Coming, Fact, Facts, Head } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";

export default function SingleSignOn() {
  const one = useOne("sso", (signal) => orgSsoGet({}, { signal })),
    v = one.value.value,
    c = v?.configuration;
  useEvery(30, () => void one.load(), [one]);
  return (
    <>
      <Head title="Single sign-on">{v && <Status of={c ? "enabled" : "ended"} say={c ? "on" : "off"} />}</Head>
      {!v ? (
        <Coming of={one} />
      ) : (
        <>
          <p class="dim">
            People whose address is of a domain below, vouched for by your OpenID Connect provider, sign in there and
            become members. The provider is asked for its metadata before anything is kept.
          </p>
          <Facts>
            <Fact name="Register at the provider">
              <Code text={v.redirect_uri} />
            </Fact>
            <Fact name="People begin at">
              <Code text={v.start_url} />
            </Fact>
            {c && (
              <Fact name="Last changed">
                <Time at={c.updated_at} />
              </Fact>
            )}
          </Facts>
          <Form
            key={c?.updated_at ?? ""}
            call={orgSsoSet}
            submit={c ? "Replace" : "Turn it on"}
            said="The provider answered. It is on."
            keep
            done={() => void one.load()}
            read={(f) => ({
              issuer: of(f, "issuer") ?? "",
              client_id: of(f, "client_id") ?? "",
              client_secret: of(f, "client_secret"),
              domains: lines(f, "domains"),
              role: of(f, "role") as "member",
            })}
            also={
              c && (
                <Act
                  call={orgSsoDelete}
                  input={{}}
                  confirm="Turn it off? Sessions that the provider vouched for end."
                  done={() => {
                    void one.load();
                    return "People sign in as everybody does.";
                  }}
                >
                  Turn it off
                </Act>
              )
            }
          >
            {(wrong) => (
              <>
                <Text
                  name="issuer"
                  label="Issuer"
                  hint="address of the provider"
                  wrong={wrong}
                  type="url"
                  value={c?.issuer}
                  place="https://"
                />
                <Text name="client_id" label="Client id" wrong={wrong} value={c?.client_id} />
                <Text
                  name="client_secret"
                  label="Client secret"
                  hint={c ? "empty: as it is" : undefined}
                  wrong={wrong}
                  type="password"
                />
                <Text
                  name="domains"
                  label="Domains"
                  hint="of addresses it may vouch for"
                  wrong={wrong}
                  value={c?.domains.join(", ")}
                  place="example.com"
                />
                <Choice
                  name="role"
                  label="New people are"
                  wrong={wrong}
                  value={c?.role ?? "member"}
                  all={["viewer", "member", "admin"]}
                />
              </>
            )}
          </Form>
        </>
      )}
    </>
  );
}
