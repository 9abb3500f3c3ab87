// Where copies of the account's model calls are sent.
import { useState } from "preact/hooks";
import { billingLogSinkClear, billingLogSinkGet, billingLogSinkSet } from "../client.gen";
import { useOne } from "../list";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Choice, of, pairs, Text } from "../ui/inputs";
import { count } from "../ui/money";
import { Act, Coming, Fact, Facts } from "../ui/parts";
import { Time } from "../ui/time";

type Kind = "https" | "otlp" | "s3";
const kinds = [
  ["https", "an address that takes JSON lines"],
  ["otlp", "an OpenTelemetry collector"],
  ["s3", "a bucket of S3"],
] as const;

export function Copies() {
  const one = useOne("copies", (signal) => billingLogSinkGet({}, { signal })),
    [kind, setKind] = useState<Kind>("https"),
    v = one.value.value,
    c = v?.configuration;
  if (!v) return <Coming of={one} />;
  return (
    <>
      {c ? (
        <>
          <Facts>
            <Fact name="To">
              {inert(c.url)} <span class="dim">{kinds.find(([k]) => k === c.kind)?.[1]}</span>
            </Fact>
            {c.headers.length > 0 && <Fact name="With the headers">{inert(c.headers.join(", "))}</Fact>}
            <Fact name="Sent">
              {count(c.sent)}, last <Time at={c.last_sent_at} />
            </Fact>
            <Fact name="Dropped">{count(c.dropped)}</Fact>
            <Fact name="Given up">{count(c.failed)}</Fact>
          </Facts>
          {c.last_error && <p class="trouble">{inert(c.last_error)}</p>}
        </>
      ) : (
        <p class="dim">Nothing is sent.</p>
      )}
      <Form
        call={billingLogSinkSet}
        submit={c ? "Send them there instead" : "Send copies"}
        said="It has taken a probe."
        done={() => void one.load()}
        read={(f) => ({
          kind,
          url: of(f, "url") ?? "",
          headers: pairs(f, "headers"),
          region: of(f, "region"),
          access_key_id: of(f, "access_key_id"),
          secret_access_key: of(f, "secret_access_key"),
        })}
        also={
          c && (
            <Act
              call={billingLogSinkClear}
              input={{}}
              confirm="Send copies nowhere any more? What waits to be sent is forgotten."
              done={() => {
                void one.load();
                return "Nothing more is sent.";
              }}
            >
              Send nothing
            </Act>
          )
        }
      >
        {(wrong) => (
          <>
            <Choice name="kind" label="To" wrong={wrong} value={kind} all={kinds} onPick={(k) => setKind(k as Kind)} />
            <Text name="url" label="Address" wrong={wrong} type="url" place="https://collector.example.com/in" />
            {kind === "s3" ? (
              <>
                <Text name="region" label="Region" hint="us-east-1" wrong={wrong} />
                <Text name="access_key_id" label="Access key" wrong={wrong} />
                <Text name="secret_access_key" label="Secret key" wrong={wrong} type="password" />
              </>
            ) : (
              <Text name="headers" label="Headers" hint="name=value, one a line" wrong={wrong} rows={2} code />
            )}
          </>
        )}
      </Form>
    </>
  );
}
