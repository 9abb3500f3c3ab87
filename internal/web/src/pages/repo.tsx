// One repository: what happens in it, the policy it is held to, its switches, secrets
// and sessions.
import {
  projectGet,
  projectSecretDelete,
  projectSecretList,
  projectSecretSet,
  projectSetup,
  projectUpdate,
  sessionListByProject,
  type Repository,
  type Session,
} from "../client.gen";
import { Ask } from "../cards/answer";
import { Overview } from "../cards/overview";
import { Policy } from "../cards/policy";
import { placeOf } from "../cards/kb";
import { Secrets } from "../cards/secrets";
import { SessionTable } from "../cards/sessions";
import { Settings } from "../cards/switches";
import { useAgain, useList, useOne } from "../list";
import { query, setQuery, type PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Act, Code, Coming, Fact, Facts, Head, Tabs } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Status } from "../ui/status";
import { Time } from "../ui/time";

type At = { owner: string; repo: string };
const tabs = ["overview", "ask", "policy", "settings", "sessions", "secrets"];

export default function RepositoryPage(p: PageProps) {
  const at: At = { owner: p.params.owner!, repo: p.params.repo! },
    full = at.owner + "/" + at.repo,
    tab = query().get("tab") ?? "overview";
  const one = useOne<Repository>(full, (signal) => projectGet(at, { signal })),
    r = one.value.value;
  useAgain(
    "repos",
    (x) => x.row?.full_name === full,
    () => void one.load(),
  );
  if (!r)
    return (
      <>
        <Head title={full} />
        <Coming of={one} />
      </>
    );
  const again = () => void one.load();
  return (
    <div class={tab === "sessions" ? "room" : undefined}>
      <Head title={r.full_name}>
        <Status
          of={r.enabled ? "enabled" : "disabled"}
          say={r.enabled ? "agents may work on it" : "off: its tasks wait"}
        />
        {r.policy_valid !== null && (
          <Status
            of={r.policy_valid ? "valid" : "invalid"}
            say={r.policy_valid ? "policy file valid" : "policy file not valid"}
          />
        )}
        <span class="grow" />
        {r.enabled && (
          <Act
            call={projectSetup}
            input={at}
            confirm="Send an agent to look it over and leave scripts and notes for agents, in a pull request?"
            done={(o) => (o.task_id ? "Queued." : "It needs a person first.")}
          >
            Set up by an agent
          </Act>
        )}
        <Act
          call={projectUpdate}
          input={{ ...at, host: r.host, enabled: !r.enabled }}
          class={r.enabled ? undefined : "main"}
          confirm={r.enabled ? "Turn it off? Its tasks wait, and new ones are refused." : undefined}
          done={(o) => {
            again();
            return o.enabled ? "Agents may work on it." : "It is off.";
          }}
        >
          {r.enabled ? "Turn off" : "Enable"}
        </Act>
      </Head>
      <Facts>
        <Fact name="Default branch">
          <code>{inert(r.default_branch)}</code>
        </Fact>
        <Fact name="Host">{r.host}</Fact>
        <Fact name="Seen by">{r.private ? "the account" : "everybody"}</Fact>
        <Fact name="Last push">
          <Time at={r.last_activity_at} />
        </Fact>
        <Fact name="Clone">
          <Code text={r.clone_url} />
        </Fact>
      </Facts>
      <Tabs
        label="Parts of the repository"
        all={tabs}
        at={tab}
        to={(t) => setQuery({ tab: t === "overview" ? "" : t })}
      >
        <a href={`/ui/prs?repo=${full}`}>Pull requests</a>
        <a href={placeOf(full)}>Knowledge</a>
        <a href={"/ui/artifacts?repo=" + full}>Artifacts</a>
        {[
          ["issues", "Issues"],
          ["reviews", "Reviews"],
          ["merge-queue", "Merge queue"],
          ["flakes", "Flakes"],
        ].map(([at, name]) => (
          <a key={at} href={`/ui/repos/${full}/${at}`}>
            {name}
          </a>
        ))}
      </Tabs>
      {tab === "ask" ? (
        <Ask at={at} repo={r} />
      ) : tab === "policy" ? (
        <Policy at={at} />
      ) : tab === "settings" ? (
        <Settings at={at} of={r} host={r.host} key={String(r.enabled)} enabled={r.enabled} changed={again} />
      ) : tab === "sessions" ? (
        <Sessions at={at} />
      ) : tab === "secrets" ? (
        <>
          <p class="dim">
            Runs on this repository get them from the next one on. One of its name wins over{" "}
            <a href="/ui/settings/secrets">the account's</a>.
          </p>
          <Secrets at={at} list={projectSecretList} set={projectSecretSet} drop={projectSecretDelete} />
        </>
      ) : (
        <>
          <Overview at={at} enabled={r.enabled} />
          <Raw call={projectGet} input={at} of={r} />
        </>
      )}
    </div>
  );
}

function Sessions(p: { at: At }) {
  const full = p.at.owner + "/" + p.at.repo;
  const list = useList<Session>(
    "sessions",
    (cursor, signal) => sessionListByProject({ ...p.at, cursor, per_page: 100 }, { signal }),
    { topic: "sessions", fits: (s) => s.repo === full },
  );
  return (
    <section class="room" aria-label="Sessions">
      <SessionTable list={list} empty="Nothing has called a model for it yet." />
    </section>
  );
}
