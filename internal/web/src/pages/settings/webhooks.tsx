// Webhooks: where events are sent, and what became of each attempt.
import { useState } from "preact/hooks";
import {
  webhookCreate,
  webhookDelete,
  webhookDeliveries,
  webhookEvents,
  webhookList,
  webhookRedeliver,
  webhookRevive,
  webhookTest,
  type Webhook,
  type WebhookAttempt,
} from "../../client.gen";
import { Who } from "../../cards/who";
import { useList, type List } from "../../list";
import { inert } from "../../ui/ansi";
import { useFresh } from "../../ui/every";
import { Form } from "../../ui/form";
import { Cards, Choice, of, Once, Text } from "../../ui/inputs";
import { Act, Head } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";

const formats = [
  ["json", "signed JSON"],
  ["slack", "Slack"],
  ["teams", "Teams"],
  ["discord", "Discord"],
] as const;
const fates: Record<WebhookAttempt["status"], string> = {
  ok: "delivered",
  retrying: "running",
  exhausted: "exhausted",
  skipped: "skipped",
};

// newest tells whether no later attempt of the same delivery is known.
const newest = (all: List<WebhookAttempt>, a: WebhookAttempt) =>
  !all.ids.value.some((id) => {
    const other = all.rows.get(id)!.value;
    return other.delivery_id === a.delivery_id && other.attempt > a.attempt;
  });

export default function Webhooks() {
  const list = useList<Webhook>("hooks", (cursor, signal) => webhookList({ cursor, per_page: 50 }, { signal })),
    [secret, setSecret] = useState("");
  const sent = useList<WebhookAttempt>("attempts", async (_, signal) => ({
    data: (await webhookDeliveries({ per_page: 100 }, { signal })).data,
  }));
  const again = () => {
    void list.load();
    void sent.load();
  };
  useFresh(5, list, sent);
  return (
    <>
      <Head title="Webhooks" />
      {secret && (
        <Once name="Secret that signs what is sent" text={secret} kept={() => setSecret("")}>
          <p class="dim">
            <code>X-Service-Signature</code> is <code>sha256=</code> and the HMAC-SHA256, in hex, of{" "}
            <code>X-Service-Timestamp</code>, a full stop and the body.
          </p>
        </Once>
      )}
      <Cards
        list={list}
        label="Webhooks"
        empty="Events are sent nowhere."
        row={(h) => (
          <>
            <div>
              <p>
                <strong>{inert(h.name)}</strong> <span class="dim">{inert(h.url)}</span>
              </p>
              <p class="dim">
                {formats.find(([f]) => f === h.format)?.[1]} · {h.events.join(", ")} · made by <Who of={h.created_by} />
              </p>
              {!h.healthy && (
                <p class="trouble">
                  Nothing more is sent there: an event used up its attempts <Time at={h.unhealthy_at} />.
                </p>
              )}
            </div>
            <div class="acts">
              <Status of={h.healthy ? "enabled" : "exhausted"} say={h.healthy ? "healthy" : "unhealthy"} />
              {!h.healthy && (
                <Act
                  call={webhookRevive}
                  input={{ id: h.id }}
                  class="main"
                  done={() => {
                    again();
                    return "Events are sent there again. What happened in between is not.";
                  }}
                >
                  Revive
                </Act>
              )}
              <Act
                call={webhookTest}
                input={{ id: h.id }}
                done={() => {
                  again();
                  return "A test is on its way.";
                }}
              >
                Test
              </Act>
              <Act
                call={webhookDelete}
                input={{ id: h.id }}
                confirm={`Delete ${h.name}? What is on its way is not sent any more.`}
                done={() => {
                  again();
                  return "Deleted.";
                }}
              >
                Delete
              </Act>
            </div>
          </>
        )}
      />
      <h2>Add a webhook</h2>
      <Form
        call={webhookCreate}
        submit="Add it"
        done={(o) => {
          setSecret(o.secret);
          again();
        }}
        read={(f) => ({
          name: of(f, "name") ?? "",
          url: of(f, "url") ?? "",
          format: of(f, "format") as "json",
          events: f.getAll("event").length ? f.getAll("event").map(String) : undefined,
        })}
      >
        {(wrong) => (
          <>
            <Text name="name" label="Name" hint="policy files call it by this" wrong={wrong} />
            <Text name="url" label="Address" wrong={wrong} type="url" place="https://" />
            <Choice name="format" label="It understands" wrong={wrong} value="json" all={formats} />
            <details>
              <summary>Events; the usual ones unless you tick some</summary>
              <div class="scopes">
                {webhookEvents.map((e) => (
                  <label key={e} class="check">
                    <input type="checkbox" name="event" value={e} /> <code>{e}</code>
                  </label>
                ))}
              </div>
            </details>
            {wrong("events") && (
              <p class="trouble" role="alert">
                Events: {wrong("events")!.join(", ")}
              </p>
            )}
          </>
        )}
      </Form>
      <h2>What was sent</h2>
      <p class="dim">The last 100 attempts.</p>
      <Cards
        list={sent}
        label="Attempts"
        empty="Nothing yet."
        row={(a) => (
          <>
            <div>
              <p>
                <code>{a.type}</code>{" "}
                <span class="dim">
                  to {inert(a.hook_name)}, <Time at={a.at} />
                  {a.attempt > 0 && <>, attempt {a.attempt}</>}, {a.duration_ms} ms
                </span>
              </p>
              <p>
                {a.response_status !== null && <span class="num">{a.response_status} </span>}
                {a.error && inert(a.error)}
                {a.next_attempt_at && newest(sent, a) && (
                  <span class="dim">
                    {" "}
                    · next <Time at={a.next_attempt_at} />
                  </span>
                )}
              </p>
              {a.response_excerpt && (
                <details>
                  <summary>Answer</summary>
                  <pre tabIndex={0}>{inert(a.response_excerpt)}</pre>
                </details>
              )}
            </div>
            <div class="acts">
              {a.status === "retrying" && !newest(sent, a) ? (
                <Status of="failed" />
              ) : (
                <Status of={fates[a.status]} say={a.status} />
              )}
              <Act
                call={webhookRedeliver}
                input={{ id: a.id }}
                done={() => {
                  again();
                  return "It is sent once more, with the same id.";
                }}
              >
                Send again
              </Act>
            </div>
          </>
        )}
      />
    </>
  );
}
