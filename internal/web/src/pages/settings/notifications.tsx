// Notifications: what one is told of, where, and when not.
import { useRef, useState } from "preact/hooks";
import { said } from "../../api";
import {
  notificationPrefsList,
  notificationPrefsSet,
  notificationWebhookClear,
  notificationWebhookGet,
  notificationWebhookSet,
  notificationWebhookTest,
  type NotificationChannels,
  type NotificationPreferences,
} from "../../client.gen";
import { useOne } from "../../list";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { Choice, of, Once, Text } from "../../ui/inputs";
import { Act, Coming, Empty, Head } from "../../ui/parts";
import { Status, words } from "../../ui/status";
import { Time } from "../../ui/time";
import { tell } from "../../ui/toast";
import { Browsers, Routes } from "../../cards/channels";

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
