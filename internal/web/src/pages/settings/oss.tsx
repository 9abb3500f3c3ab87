// Open source: applying as a project, which covers private repositories.
import { accountOssVerificationApply, accountOssVerificationGet } from "../../client.gen";
import { useOne } from "../../list";
import { useEvery } from "../../ui/every";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { of, Text } from "../../ui/inputs";
import { Coming, Fact, Facts, Head } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";

export default function OpenSource() {
  const one = useOne("oss", (signal) => accountOssVerificationGet({}, { signal })),
    v = one.value.value,
    a = v?.application;
  useEvery(30, () => void one.load(), [one]);
  return (
    <>
      <Head title="Open source">{a && <Status of={a.state === "rejected" ? "failed" : a.state} say={a.state} />}</Head>
      <p>
        An account that is approved as an open-source project is on the tier that covers private repositories. An
        operator of the server decides.
      </p>
      {!v ? (
        <Coming of={one} />
      ) : (
        <>
          {a && (
            <>
              <Facts>
                <Fact name="Applied">
                  <Time at={a.created_at} />
                </Fact>
                <Fact name="Decided">
                  <Time at={a.decided_at} />
                </Fact>
              </Facts>
              {a.note && <p class="hold">{inert(a.note)}</p>}
            </>
          )}
          {a?.state !== "approved" && (
            <Form
              key={a?.updated_at ?? ""}
              call={accountOssVerificationApply}
              submit={a?.state === "pending" ? "Amend" : "Apply"}
              said="Sent."
              keep
              done={() => void one.load()}
              read={(f) => ({ project_url: of(f, "url") ?? "", statement: of(f, "statement") ?? "" })}
            >
              {(wrong) => (
                <>
                  <Text
                    name="url"
                    label="Where the project can be seen"
                    wrong={wrong}
                    field="project_url"
                    type="url"
                    value={a?.project_url}
                  />
                  <Text
                    name="statement"
                    label="Its licence, and what it is for"
                    wrong={wrong}
                    rows={5}
                    value={a?.statement}
                  />
                </>
              )}
            </Form>
          )}
        </>
      )}
    </>
  );
}
