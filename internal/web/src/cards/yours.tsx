// What agents are told of a person, and the person's own token of the code host.
import { useState } from "preact/hooks";
import {
  selfGithubTokenClear,
  selfGithubTokenGet,
  selfGithubTokenSet,
  selfRepoBindingClear,
  selfRepoBindingList,
  selfRepoBindingSet,
  selfSystemPromptClear,
  selfSystemPromptGet,
  selfSystemPromptSet,
} from "../client.gen";
import { useOne } from "../list";
import { useRepos } from "../whole";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Choice, of, Text } from "../ui/inputs";
import { Act, Coming, Empty, Fact, Facts } from "../ui/parts";
import { Status } from "../ui/status";
import { Time } from "../ui/time";

export function Prompt() {
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
export function HostToken() {
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
