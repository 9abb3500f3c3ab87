// Where else notifications go: browsers, and routes of mail and chat.
import {
  emailRouteCreate,
  emailRouteDelete,
  emailRouteList,
  emailRouteResend,
  pushList,
  pushSubscribe,
  pushTest,
  pushUnsubscribe,
} from "../client.gen";
import { useOne } from "../list";
import { canPush, subscribe } from "../push";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { of, Text } from "../ui/inputs";
import { Act, Empty } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";

// here is pushSubscribe with what this browser says of itself.
const here = (key: string) =>
  Object.assign(
    async (input: { label?: string }, init?: { key?: string }) =>
      pushSubscribe({ ...input, ...(await subscribe(key)) }, init),
    { id: pushSubscribe.id, scope: pushSubscribe.scope, method: pushSubscribe.method, path: pushSubscribe.path },
  );

export function Browsers() {
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

export function Routes(p: { kinds: string[] }) {
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
