// You: the look, the keys, what your runs are told, your token of a code host, leaving.
import { useState } from "preact/hooks";
import {
  accountAcceptTos,
  accountActiveAccountSwitch,
  memberLeave,
  selfGithubTokenClear,
  selfGithubTokenGet,
  selfGithubTokenSet,
  selfRepoBindingClear,
  selfRepoBindingList,
  selfRepoBindingSet,
  selfRunnerList,
  selfSystemPromptClear,
  selfSystemPromptGet,
  selfSystemPromptSet,
} from "../../client.gen";
import { Runners } from "../../cards/runners";
import { Asked } from "../../cards/asked";
import { Password } from "../../cards/signin";
import { useOne } from "../../list";
import { load, may, me } from "../../session";
import { useRepos } from "../../whole";
import { density, theme } from "../../look";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { Choice, of, Text } from "../../ui/inputs";
import { single, setSingle } from "../../ui/keys";
import { Act, Coming, Empty, Fact, Facts, Head, Loading } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";

export default function You() {
  const m = me.value;
  if (!m)
    return (
      <>
        <Head title="You" />
        <Loading />
      </>
    );
  return (
    <>
      <Head title="You" />
      <Facts>
        {m.user && (
          <>
            <Fact name="Login">{inert(m.user.login)}</Fact>
            <Fact name="Name">{inert(m.user.name) || "–"}</Fact>
            <Fact name="E-mail">{inert(m.user.email)}</Fact>
          </>
        )}
        <Fact name="Acts for">{inert(m.account.login)}</Fact>
        <Fact name="Role">{m.account.role || "–"}</Fact>
        <Fact name="Terms">
          {m.tos.accepted ? (
            <>
              accepted <Time at={m.tos.accepted_at} />
            </>
          ) : (
            <Act
              call={accountAcceptTos}
              input={{}}
              done={() => {
                void load();
                return "Accepted.";
              }}
            >
              Accept version {m.tos.version}
            </Act>
          )}
        </Fact>
      </Facts>
      {m.credential.kind === "session" && <Password />}
      <h2>This browser</h2>
      <Choice
        name="theme"
        label="Look"
        wrong={() => undefined}
        value={theme.chosen.value}
        all={[["system", "as the system"], "light", "dark"]}
        onPick={(v) => theme.choose(v)}
      />
      <Choice
        name="rows"
        label="Rows of lists"
        wrong={() => undefined}
        value={density.chosen.value}
        all={[
          ["roomy", "roomy"],
          ["compact", "compact, where there is room for columns"],
        ]}
        onPick={(v) => density.choose(v)}
      />
      <label class="check">
        <input type="checkbox" checked={single.value} onChange={(e) => setSingle(e.currentTarget.checked)} />
        <span>
          Single letters do something; <kbd>?</kbd> says what
        </span>
      </label>
      {may(selfSystemPromptGet) && <Prompt />}
      {may(selfGithubTokenGet) && <HostToken />}
      {may(selfRunnerList) && <Runners />}
      {m.credential.kind === "session" && <Asked />}
      <h2>Organisations</h2>
      <ul class="cards" aria-label="Organisations">
        {m.memberships.map((x) => (
          <li key={x.account_id} class="item">
            <div>
              <p>
                <strong>{inert(x.login)}</strong> <span class="dim">{x.role}</span>
              </p>
            </div>
            <div class="acts">
              {x.account_id !== m.account.id && (
                <Act
                  call={accountActiveAccountSwitch}
                  input={{ account: x.account_id }}
                  done="It is what you act for after signing in."
                >
                  Make it the default
                </Act>
              )}
              <Act
                call={memberLeave}
                input={{ account: x.account_id }}
                confirm={`Leave ${x.login}? Your sessions and tokens there stop at once; what you filed stays.`}
                done={() => {
                  void load();
                  return "You have left.";
                }}
              >
                Leave
              </Act>
            </div>
          </li>
        ))}
      </ul>
    </>
  );
}

function Prompt() {
  const one = useOne("prompt", (signal) => selfSystemPromptGet({}, { signal })),
    v = one.value.value;
  return (
    <>
      <h2>System prompt</h2>
      <p class="dim">
        Runs of tasks that you file are told it, besides those of the account, the repository and the template.{" "}
        {"{{name}}"} is a <a href="/ui/templates?tab=variables">variable</a>.
      </p>
      {v ? (
        <Form
          call={selfSystemPromptSet}
          submit="Save"
          said="Saved."
          keep
          done={() => void one.load()}
          read={(f) => ({ prompt: String(f.get("prompt") ?? "") })}
          also={
            v.prompt !== null && (
              <Act
                call={selfSystemPromptClear}
                input={{}}
                confirm="Clear your system prompt?"
                done={() => {
                  void one.load();
                  return "Cleared.";
                }}
              >
                Clear
              </Act>
            )
          }
        >
          {(wrong) => (
            <Text
              key={v.updated_at}
              name="prompt"
              label="Text"
              hint="no secrets: every agent reads it"
              wrong={wrong}
              rows={6}
              value={v.prompt}
            />
          )}
        </Form>
      ) : (
        <Coming of={one} />
      )}
    </>
  );
}

// HostToken is a person's own token at a code host, and the repositories driven with it.
function HostToken() {
  const one = useOne("token", (signal) => selfGithubTokenGet({}, { signal })),
    bound = useOne("bound", (signal) => selfRepoBindingList({}, { signal }));
  const repos = useRepos(),
    t = one.value.value,
    [open, set] = useState(false);
  const again = () => {
    void one.load();
    void bound.load();
  };
  return (
    <>
      <h2>Your token of a code host</h2>
      <p class="dim">
        Repositories bound to it are driven with your rights there in place of the App's: by your own git, and by runs
        of tasks you asked for.
      </p>
      {!t ? (
        <Coming of={one} />
      ) : t.connected ? (
        <>
          <Facts>
            <Fact name="State">
              <Status of={t.state === "ok" ? "verified" : t.state} />
            </Fact>
            <Fact name="Of">
              {t.login && inert(t.login)} at {t.host}
            </Fact>
            <Fact name="Token">
              <code>{t.masked}</code>
            </Fact>
            <Fact name="Ends">{t.expires_at ? <Time at={t.expires_at} /> : "not known"}</Fact>
          </Facts>
          <div class="tools">
            <button type="button" aria-expanded={open} onClick={() => set(!open)}>
              Replace it
            </button>
            <Act
              call={selfGithubTokenClear}
              input={{}}
              confirm="Forget the token and all its bindings? At the host it stays good until you revoke it there."
              done={() => {
                again();
                return "Forgotten.";
              }}
            >
              Forget it
            </Act>
          </div>
        </>
      ) : (
        <Empty>There is none.</Empty>
      )}
      {t && (!t.connected || open) && (
        <Form
          call={selfGithubTokenSet}
          submit="Store it"
          said="Stored. It cannot be read back."
          done={() => {
            set(false);
            again();
          }}
          read={(f) => ({ token: of(f, "token") ?? "", host: of(f, "host") })}
        >
          {(wrong) => (
            <>
              <Text name="token" label="Token" hint="a fine-grained one best" wrong={wrong} type="password" />
              <Text name="host" label="Host" hint="empty: the one this server is connected to" wrong={wrong} />
            </>
          )}
        </Form>
      )}
      {t?.connected && (
        <>
          <h3>Repositories bound to it</h3>
          {bound.value.value?.data.length ? (
            <ul class="cards" aria-label="Bound repositories">
              {bound.value.value.data.map((r) => {
                const [owner, repo] = r.repo.split("/");
                return (
                  <li key={r.repo_id} class="item">
                    <div>
                      <p>
                        <a href={"/ui/repos/" + r.repo}>{r.repo}</a>
                      </p>
                      {r.reason && <p class="trouble">{inert(r.reason)}</p>}
                    </div>
                    <div class="acts">
                      <Status of={r.state === "ok" ? "verified" : r.state} />
                      <Act
                        call={selfRepoBindingClear}
                        input={{ owner: owner!, repo: repo ?? "" }}
                        done={() => {
                          again();
                          return "It is driven with the App's rights again.";
                        }}
                      >
                        Unbind
                      </Act>
                    </div>
                  </li>
                );
              })}
            </ul>
          ) : (
            <Empty>None.</Empty>
          )}
          <Form
            call={selfRepoBindingSet}
            submit="Bind"
            said="Bound."
            done={again}
            read={(f) => ({ repo: of(f, "repo") ?? "" })}
          >
            {(wrong) => (
              <Choice
                name="repo"
                label="Repository"
                wrong={wrong}
                all={(repos.value.value?.data ?? []).filter((r) => r.host !== "builtin").map((r) => r.full_name)}
              />
            )}
          </Form>
        </>
      )}
    </>
  );
}
