// Notifications: what one is told of, where, and when not.
import { useRef, useState } from "preact/hooks";
import { said } from "../../api";
import {
  emailRouteCreate,
  emailRouteDelete,
  emailRouteList,
  emailRouteResend,
  notificationPrefsList,
  notificationPrefsSet,
  notificationWebhookClear,
  notificationWebhookGet,
  notificationWebhookSet,
  notificationWebhookTest,
  pushList,
  pushSubscribe,
  pushTest,
  pushUnsubscribe,
  type NotificationChannels,
  type NotificationPreferences,
} from "../../client.gen";
import { useOne } from "../../list";
import { canPush, subscribe } from "../../push";
import { may } from "../../session";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { Choice, of, Once, Text } from "../../ui/inputs";
import { Act, Coming, Empty, Head } from "../../ui/parts";
import { Status, words } from "../../ui/status";
import { Time } from "../../ui/time";
import { tell } from "../../ui/toast";

const channels: (keyof NotificationChannels)[] = ["inbox", "email", "push", "webhook"];
const names: Record<keyof NotificationChannels, string> = {
  inbox: "inbox",
  email: "e-mail",
  push: "push",
  webhook: "own webhook",
};
const zoneHere = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export default function Notifications() {
  const one = useOne<NotificationPreferences>("prefs", (signal) => notificationPrefsList({}, { signal })),
    p = one.value.value;
  return (
    <>
      <Head title="Notifications" />
      {!p ? (
        <Coming of={one} />
      ) : (
        <>
          {p.email_refused_at && (
            <p class="hold">
              Mails of notifications are held back: a mail server refused your address <Time at={p.email_refused_at} />.
            </p>
          )}
          <Matrix
            of={p}
            changed={(x) => {
              one.value.value = x;
            }}
          />
          <h2>Quiet hours</h2>
          <p class="dim">Mails and push messages wait for their end, those of urgent kinds excepted.</p>
          <Form
            key={p.quiet ?? ""}
            call={notificationPrefsSet}
            submit="Set"
            said="Set."
            keep
            done={(x) => {
              one.value.value = x;
            }}
            read={(f) => {
              const from = of(f, "from"),
                to = of(f, "to");
              return { quiet: from || to ? `${from ?? ""}-${to ?? ""} ${of(f, "zone") ?? zoneHere()}` : "" };
            }}
          >
            {(wrong) => {
              const [hours, zone] = (p.quiet ?? "").split(" "),
                [from, to] = (hours ?? "").split("-");
              return (
                <>
                  <Text
                    name="from"
                    label="From"
                    hint="empty: none"
                    wrong={(n) => wrong("quiet") ?? wrong(n)}
                    value={from}
                    place="22:00"
                  />
                  <Text name="to" label="To" wrong={wrong} value={to} place="07:00" />
                  <Text name="zone" label="In the zone" wrong={wrong} value={zone ?? zoneHere()} />
                </>
              );
            }}
          </Form>
        </>
      )}
      <Own />
      <Browsers />
      <Routes kinds={p?.data.map((x) => x.kind).filter((k) => k !== "digest") ?? []} />
    </>
  );
}

// Matrix is a box for each kind and channel. Each is saved when it is ticked.
function Matrix(p: { of: NotificationPreferences; changed: (x: NotificationPreferences) => void }) {
  const [ticked, set] = useState(new Map<string, boolean>()), // what is not answered yet
    done = useRef(Promise.resolve());
  const tick = (kind: string, channel: string, on: boolean) => {
    const key = kind + channel;
    set((all) => new Map(all).set(key, on));
    // Each answer is the whole: the ticks are sent one after the other.
    done.current = done.current
      .then(() => notificationPrefsSet({ matrix: { [kind]: { [channel]: on } } }))
      .then(
        (x) => {
          p.changed(x);
          tell("Saved.");
        },
        (e) => tell(said(e)),
      )
      .then(() => set((all) => new Map([...all].filter(([k]) => k !== key))));
  };
  return (
    <div class="scroll" tabIndex={0}>
      <table class="matrix narrows">
        <caption>What you are told of, and where</caption>
        <thead>
          <tr>
            <th scope="col">Kind</th>
            {channels.map((c) => (
              <th key={c} scope="col">
                {names[c]}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {p.of.data.map((k) => (
            <tr key={k.kind}>
              <th scope="row">
                <strong>{words(k.kind)}</strong>
                {k.urgent && <small> urgent</small>}
                <br />
                <small>{k.doc}</small>
              </th>
              {channels.map((c) => (
                <td key={c} data-name={names[c]}>
                  <input
                    type="checkbox"
                    aria-label={`${words(k.kind)} by ${names[c]}`}
                    checked={ticked.get(k.kind + c) ?? k.channels[c]}
                    disabled={(k.locked && k.channels[c]) || ticked.has(k.kind + c)}
                    title={k.locked ? "It cannot be switched off" : undefined}
                    onChange={(e) => tick(k.kind, c, e.currentTarget.checked)}
                  />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Own() {
  const one = useOne("own", (signal) => notificationWebhookGet({}, { signal })),
    [secret, setSecret] = useState(""),
    h = one.value.value?.webhook;
  return (
    <>
      <h2>Your own webhook</h2>
      {secret && <Once name="Secret that signs what is sent to you" text={secret} kept={() => setSecret("")} />}
      {h ? (
        <ul class="cards" aria-label="Your webhook">
          <li class="item">
            <div>
              <p>
                {inert(h.url)}{" "}
                <span class="dim">
                  {h.format}, since <Time at={h.created_at} suffix={false} />
                </span>
              </p>
              {!h.healthy && (
                <p class="trouble">
                  Nothing more is sent there since <Time at={h.unhealthy_at} />. Set it again to try anew.
                </p>
              )}
            </div>
            <div class="acts">
              <Status of={h.healthy ? "enabled" : "exhausted"} say={h.healthy ? "healthy" : "unhealthy"} />
              <Act call={notificationWebhookTest} input={{}} done="A message is on its way.">
                Test
              </Act>
              <Act
                call={notificationWebhookClear}
                input={{}}
                confirm="Forget it? Nothing more is sent there."
                done={() => {
                  void one.load();
                  return "Forgotten.";
                }}
              >
                Forget
              </Act>
            </div>
          </li>
        </ul>
      ) : (
        <Empty>There is none.</Empty>
      )}
      <Form
        call={notificationWebhookSet}
        submit={h ? "Replace" : "Set"}
        done={(o) => {
          setSecret(o.secret);
          void one.load();
        }}
        read={(f) => ({ url: of(f, "url") ?? "", format: of(f, "format") as "json" })}
      >
        {(wrong) => (
          <>
            <Text name="url" label="Address" wrong={wrong} type="url" place="https://" />
            <Choice
              name="format"
              label="It understands"
              wrong={wrong}
              value="json"
              all={[
                ["json", "signed JSON"],
                ["slack", "Slack"],
                ["teams", "Teams"],
                ["discord", "Discord"],
              ]}
            />
          </>
        )}
      </Form>
    </>
  );
}

// here is pushSubscribe with what this browser says of itself.
const here = (key: string) =>
  Object.assign(
    async (input: { label?: string }, init?: { key?: string }) =>
      pushSubscribe({ ...input, ...(await subscribe(key)) }, init),
    { id: pushSubscribe.id, scope: pushSubscribe.scope, method: pushSubscribe.method, path: pushSubscribe.path },
  );

function Browsers() {
  const one = useOne("push", (signal) => pushList({}, { signal })),
    all = one.value.value?.data ?? [];
  return (
    <>
      <h2>Browsers that take messages</h2>
      {all.length ? (
        <ul class="cards" aria-label="Browsers">
          {all.map((b) => (
            <li key={b.id} class="item">
              <div>
                <p>
                  {b.label ? inert(b.label) : "a browser"} <span class="dim">through {inert(b.service)}</span>
                </p>
                <p class="dim">
                  since <Time at={b.created_at} suffix={false} />, last message <Time at={b.sent_at} />
                </p>
              </div>
              <div class="acts">
                <Act
                  call={pushUnsubscribe}
                  input={{ id: b.id }}
                  done={() => {
                    void one.load();
                    return "Nothing more is sent there.";
                  }}
                >
                  Unsubscribe
                </Act>
              </div>
            </li>
          ))}
        </ul>
      ) : (
        <Empty>None.</Empty>
      )}
      {all.length > 0 && (
        <Act
          call={pushTest}
          input={{}}
          done={(o) => `Sent to ${o.browsers} ${o.browsers === 1 ? "browser" : "browsers"}.`}
        >
          Send a test
        </Act>
      )}
      {!canPush() ? (
        <p class="dim">This browser takes no messages from here: it needs an https address.</p>
      ) : (
        one.value.value && (
          <Form
            call={here(one.value.value.public_key)}
            submit="Take messages here"
            said="This browser takes messages."
            done={() => void one.load()}
            read={(f) => ({ label: of(f, "label") })}
          >
            {(wrong) => <Text name="label" label="Name of this browser" hint="for you" wrong={wrong} />}
          </Form>
        )
      )}
    </>
  );
}

function Routes(p: { kinds: string[] }) {
  const one = useOne("routes", (signal) => emailRouteList({}, { signal })),
    all = one.value.value?.data ?? [],
    again = () => void one.load();
  return (
    <>
      <h2>Addresses of teams</h2>
      <p class="dim">
        An address gets each notice of its kinds once, whoever it concerns, after somebody there has confirmed it.
      </p>
      {all.length ? (
        <ul class="cards" aria-label="Addresses">
          {all.map((r) => (
            <li key={r.id} class="item">
              <div>
                <p>{inert(r.address)}</p>
                <p class="dim">{r.kinds.map(words).join(", ")}</p>
                {r.email_refused_at && (
                  <p class="trouble">
                    A mail server refused it <Time at={r.email_refused_at} />.
                  </p>
                )}
              </div>
              <div class="acts">
                <Status
                  of={r.confirmed_at ? "verified" : "waiting"}
                  say={r.confirmed_at ? "confirmed" : "not confirmed"}
                />
                {!r.confirmed_at && (
                  <Act
                    call={emailRouteResend}
                    input={{ id: r.id }}
                    done={() => {
                      again();
                      return "Asked again.";
                    }}
                  >
                    Ask again
                  </Act>
                )}
                <Act
                  call={emailRouteDelete}
                  input={{ id: r.id }}
                  confirm={`Send no more notices to ${r.address}?`}
                  done={() => {
                    again();
                    return "Removed.";
                  }}
                >
                  Remove
                </Act>
              </div>
            </li>
          ))}
        </ul>
      ) : (
        <Empty>None.</Empty>
      )}
      {may(emailRouteCreate) && p.kinds.length > 0 && (
        <Form
          call={emailRouteCreate}
          submit="Add"
          said="Somebody there is asked to confirm it."
          done={again}
          read={(f) => ({ address: of(f, "address") ?? "", kinds: f.getAll("kind").map(String) })}
        >
          {(wrong) => (
            <>
              <Text name="address" label="Address" wrong={wrong} type="email" />
              <div class="scopes">
                {p.kinds.map((k) => (
                  <label key={k} class="check">
                    <input type="checkbox" name="kind" value={k} /> {words(k)}
                  </label>
                ))}
              </div>
              {wrong("kinds") && (
                <p class="trouble" role="alert">
                  Kinds: {wrong("kinds")!.join(", ")}
                </p>
              )}
            </>
          )}
        </Form>
      )}
    </>
  );
}
