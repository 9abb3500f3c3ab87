// You: the look, the keys, what your runs are told, your token of a code host, leaving.
import {
  accountAcceptTos,
  accountActiveAccountSwitch,
  memberLeave,
  selfGithubTokenGet,
  selfRunnerList,
  selfSystemPromptGet,
} from "../../client.gen";
import { Runners } from "../../cards/runners";
import { Asked } from "../../cards/asked";
import { Password } from "../../cards/signin";
import { load, may, me } from "../../session";
import { density, theme } from "../../look";
import { inert } from "../../ui/ansi";
import { Choice } from "../../ui/inputs";
import { single, setSingle } from "../../ui/keys";
import { Act, Fact, Facts, Head, Loading } from "../../ui/parts";
import { Time } from "../../ui/time";
import { Prompt, HostToken } from "../../cards/yours";

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
