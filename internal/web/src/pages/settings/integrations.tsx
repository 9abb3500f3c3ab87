// Integrations: other systems whose deliveries become asks, and Linear as a place for
// tasks.
import { useState } from "preact/hooks";
import {
  integrationLinearDelete,
  integrationLinearGet,
  integrationLinearIssues,
  integrationLinearSet,
  integrationList,
  integrationSourceConnect,
  type ConnectedSource,
  type LinearIssue,
  type Source,
} from "../../client.gen";
import { Who } from "../../cards/who";
import { useList, useOne } from "../../list";
import { may } from "../../session";
import { useFresh } from "../../ui/every";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { Cards, Choice, of, Once, pairs, Switch, Text } from "../../ui/inputs";
import { Act, Code, Fact, Facts, Head } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";

const kinds = [
  ["gitea", "Gitea"],
  ["forgejo", "Forgejo"],
  ["gitlab", "GitLab"],
  ["sentry", "Sentry"],
  ["linear", "Linear"],
  ["pagerduty", "PagerDuty"],
  ["generic", "anything that sends JSON"],
] as const;
const theirs = ["sentry", "linear", "pagerduty"]; // they make the secret themselves

export default function Integrations() {
  const list = useList<Source>("sources", (_, signal) => integrationList({}, { signal })),
    [made, setMade] = useState<ConnectedSource>(),
    [kind, setKind] = useState("gitlab");
  useFresh(30, list);
  return (
    <>
      <Head title="Integrations" />
      {made &&
        (made.secret ? (
          <Once name="Secret that signs what it sends" text={made.secret} kept={() => setMade(undefined)}>
            <p>
              Have {made.kind} send to <Code text={made.url} />
            </p>
          </Once>
        ) : (
          <section class="once">
            <p>
              Have {made.kind} send to <Code text={made.url} />. It makes a secret for that address: give it on{" "}
              <a href={"/ui/settings/integrations/" + made.id}>the page of {inert(made.name)}</a>.
            </p>
          </section>
        ))}
      <Cards
        list={list}
        label="Sources"
        empty="No other system is connected."
        row={(s) => (
          <>
            <div>
              <p>
                <strong>
                  <a href={"/ui/settings/integrations/" + s.id}>{inert(s.name)}</a>
                </strong>{" "}
                <span class="dim">{s.kind}</span>
              </p>
              <p class="dim">
                {s.repo ?? "no repository of its own"} · last delivery <Time at={s.last_delivery_at} />
                {s.last_refused_at && (
                  <>
                    {" "}
                    · not signed <Time at={s.last_refused_at} />
                  </>
                )}
                {s.trusted && " · trusted"} · connected by <Who of={s.created_by} />
              </p>
            </div>
            <div class="acts">
              <Status
                of={s.state === "ready" ? "enabled" : "held"}
                say={s.state === "ready" ? "ready" : "awaits its secret"}
              />
            </div>
          </>
        )}
      />
      <h2>Connect a system</h2>
      <Form
        call={integrationSourceConnect}
        submit="Connect"
        done={(o) => {
          setMade(o);
          void list.load();
        }}
        read={(f) => ({
          name: of(f, "name") ?? "",
          kind: kind as "gitlab",
          repo: of(f, "repo"),
          projects: pairs(f, "projects"),
          label: of(f, "label"),
          bot: of(f, "bot"),
          secret: of(f, "secret"),
          trusted: f.has("trusted"),
        })}
      >
        {(wrong) => (
          <>
            <Choice name="kind" label="Kind" wrong={wrong} value={kind} all={kinds} onPick={setKind} />
            <Text name="name" label="Name" wrong={wrong} />
            <Text
              name="repo"
              label="Repository"
              hint="of what names no project below"
              wrong={wrong}
              place="owner/name"
            />
            <Text
              name="projects"
              label="Projects"
              hint="project there=owner/name, one a line"
              wrong={wrong}
              rows={3}
              code
            />
            <details>
              <summary>More</summary>
              <Text name="label" label="Only issues labelled" wrong={wrong} />
              <Text name="bot" label="Your automation there" hint="what it does files no ask" wrong={wrong} />
              {!theirs.includes(kind) && (
                <Text name="secret" label="Secret" hint="empty: one is made here" wrong={wrong} type="password" />
              )}
              <Switch name="trusted">
                Work may begin without a person. Everybody who can write there can then have work done.
              </Switch>
            </details>
          </>
        )}
      </Form>
      <Linear />
    </>
  );
}

function Linear() {
  const one = useOne("linear", (signal) => integrationLinearGet({}, { signal })),
    l = one.value.value;
  const issues = useList<LinearIssue>("linear-issues", (cursor, signal) =>
    may(integrationLinearIssues)
      ? integrationLinearIssues({ cursor, per_page: 50 }, { signal })
      : Promise.resolve({ data: [], next_cursor: null }),
  );
  if (!l) return null;
  return (
    <>
      <h2>Linear, for tasks</h2>
      <p class="dim">
        Tasks filed with the sink <code>linear</code> become issues of a team.
      </p>
      {l.connected && (
        <>
          <Facts>
            <Fact name="Team">{inert(l.team_name ?? l.team ?? "")}</Fact>
            <Fact name="As">{l.viewer && inert(l.viewer)}</Fact>
            <Fact name="Since">
              <Time at={l.connected_at} />
            </Fact>
          </Facts>
          {l.error && <p class="trouble">{inert(l.error)}</p>}
          <Act
            call={integrationLinearDelete}
            input={{}}
            confirm="Forget the key? Issues that are yet to be opened fail."
            done={() => {
              void one.load();
              return "Forgotten.";
            }}
          >
            Forget the key
          </Act>
        </>
      )}
      <Form
        call={integrationLinearSet}
        submit={l.connected ? "Replace" : "Connect"}
        said="Connected."
        done={() => void one.load()}
        read={(f) => ({ api_key: of(f, "api_key") ?? "", team: of(f, "team") ?? "" })}
      >
        {(wrong) => (
          <>
            <Text name="api_key" label="API key" hint="never shown again" wrong={wrong} type="password" />
            <Text name="team" label="Team" hint="its key, such as ENG" wrong={wrong} value={l.team} />
          </>
        )}
      </Form>
      {issues.ids.value.length > 0 && (
        <>
          <h3>Issues there</h3>
          <Cards
            list={issues}
            label="Issues at Linear"
            empty="None."
            row={(i) => (
              <>
                <div>
                  <p>
                    {i.url && /^https:/.test(i.url) ? (
                      <a href={i.url} target="_blank" rel="noreferrer noopener">
                        {inert(i.identifier ?? "")} {inert(i.title)}
                      </a>
                    ) : (
                      inert(i.title)
                    )}
                  </p>
                  <p class="dim">
                    {i.repo} · <Time at={i.created_at} />
                  </p>
                  {i.error && <p class="trouble">{inert(i.error)}</p>}
                </div>
                <div class="acts">
                  <Status
                    of={i.state === "wanted" ? "waiting" : i.state === "opened" ? "done" : "failed"}
                    say={i.state}
                  />
                </div>
              </>
            )}
          />
        </>
      )}
    </>
  );
}
