// One repository: what happens in it, the policy it is held to, its switches, secrets
// and sessions.
import { said } from "../api";
import {
  ciFlakes,
  projectGet,
  projectOverview,
  projectSecretDelete,
  projectSecretList,
  projectSecretSet,
  projectSettings,
  projectSetup,
  projectUpdate,
  sessionListByProject,
  type RepoOverview,
  type Repository,
  type Session,
} from "../client.gen";
import { Ask } from "../cards/answer";
import { Clamps, flat, Policy } from "../cards/policy";
import { placeOf } from "../cards/kb";
import { Secrets } from "../cards/secrets";
import { SessionTable } from "../cards/sessions";
import { useAgain, useList, useOne } from "../list";
import { query, setQuery, type PageProps } from "../route";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { usd } from "../ui/money";
import { Act, Code, Coming, Empty, Fact, Facts, Figure, Head, Loading, Tabs, Trouble } from "../ui/parts";
import { Form } from "../ui/form";
import { Text } from "../ui/inputs";
import { Raw } from "../ui/raw";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";

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
      <p class="places">
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
      </p>
      <Tabs
        label="Parts of the repository"
        all={tabs}
        at={tab}
        to={(t) => setQuery({ tab: t === "overview" ? "" : t })}
      />
      {tab === "ask" ? (
        <Ask at={at} />
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

function Overview(p: { at: At; enabled: boolean }) {
  const full = p.at.owner + "/" + p.at.repo;
  const one = useOne<RepoOverview>(
      "overview" + p.enabled,
      (signal) =>
        p.enabled
          ? projectOverview(p.at, { signal })
          : Promise.reject(new Error("It is off, so there is nothing to count. Enable it above.")),
      { counts: ["tasks", "prs", "ci", "blockers"] },
    ),
    o = one.value.value;
  const flakes = useOne("flakes" + p.enabled, (signal) =>
    p.enabled && may(ciFlakes) ? ciFlakes(p.at, { signal }) : Promise.resolve({ data: [], next_cursor: null }),
  );
  if (!o)
    return one.error.value ? (
      p.enabled ? (
        <Trouble error={one.error.value} again={() => void one.load()} />
      ) : (
        <Empty>{said(one.error.value)}</Empty>
      )
    ) : (
      <Loading />
    );
  const tasks = (show: string) => `/ui/tasks?filter=repo:${full}&show=${show}`;
  const days = `, ${o.window_days} days`;
  return (
    <>
      <h2>Now</h2>
      <div class="figures">
        <Figure n={o.tasks.in_flight} name="tasks running" one="task running" href={tasks("running")} />
        <Figure n={o.tasks.pending} name="in the queue" href={tasks("open")} />
        <Figure n={o.tasks.held} name="held" href={tasks("waits")} />
        <Figure n={o.prs.open} name="open pull requests" one="open pull request" href={"/ui/prs?repo=" + full} />
        <Figure n={o.prs.needs_person} name="need a person" one="needs a person" href={"/ui/prs?repo=" + full} />
        <Figure n={o.prs.pending_approvals} name="approvals wait" one="approval waits" href="/ui/approvals" />
        <Figure n={o.open_blockers} name="open blockers" one="open blocker" href="/ui/blockers" />
      </div>
      <h2>Lately</h2>
      <div class="figures">
        <Figure n={o.prs.merged} name={"merged" + days} href={"/ui/prs?show=merged&repo=" + full} />
        <Figure n={o.prs.closed} name={"closed" + days} href={"/ui/prs?repo=" + full} />
        <Figure n={o.tasks.completed} name={"tasks done" + days} one={"task done" + days} href={tasks("all")} />
        <Figure n={o.tasks.failed} name={"tasks failed" + days} one={"task failed" + days} href={tasks("failed")} />
        <Figure n={o.checks.failed} name={`checks failed, ${o.checks.passed} passed`} href={"/ui/ci?repo=" + full} />
        <Figure
          n={usd(o.sessions.cost_usd)}
          name={`in ${o.sessions.count} ${o.sessions.count === 1 ? "session" : "sessions"}` + days}
          href={`/ui/repos/${full}?tab=sessions`}
        />
      </div>
      {flakes.value.value && flakes.value.value.data.length > 0 && (
        <>
          <h2>Checks that come and go</h2>
          <div class="scroll" tabIndex={0}>
            <table class="bars">
              <thead>
                <tr>
                  <th>Job</th>
                  <th>Test</th>
                  <th class="end">Seen</th>
                  <th>Last</th>
                </tr>
              </thead>
              <tbody>
                {flakes.value.value.data.map((f) => (
                  <tr key={f.id}>
                    <th scope="row">
                      {inert(f.job)}
                      {f.often && (
                        <>
                          {" "}
                          <Status of="stale" say="often" />
                        </>
                      )}
                    </th>
                    <td>{inert(f.test || f.error)}</td>
                    <td class="num end">
                      {f.seen} of {f.runs}
                    </td>
                    <td>
                      <Time at={f.last_at} />
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </>
  );
}

// Branch is the form of the default branch, which the built-in host alone lets one choose.
function Branch(p: { at: At; of: Repository; changed: () => void }) {
  return (
    <>
      <h2>Default branch</h2>
      <p class="dim">Work begins from it and is merged into it, and its policy file is in force.</p>
      <Form
        key={p.of.default_branch}
        call={projectUpdate}
        read={(f) => ({ ...p.at, host: p.of.host, default_branch: String(f.get("default_branch") ?? "").trim() })}
        submit="Make it the default"
        done={(o) => {
          tell(`Work begins from ${o.default_branch} now.`);
          p.changed();
        }}
        keep
      >
        {(wrong) => (
          <Text
            name="default_branch"
            label="Default branch"
            hint="a branch that is there, such as main"
            value={p.of.default_branch}
            wrong={wrong}
          />
        )}
      </Form>
    </>
  );
}

function Settings(p: { at: At; of: Repository; host: string; enabled: boolean; changed: () => void }) {
  const one = useOne("settings", (signal) => projectSettings(p.at, { signal })),
    s = one.value.value;
  if (!p.enabled)
    return (
      <Empty>
        It is off: its tasks wait, and new ones are refused. The other switches can be turned when it is enabled.
      </Empty>
    );
  if (!s) return <Coming of={one} />;
  return (
    <>
      <h2>Switches</h2>
      <ul class="cards">
        {s.switches.map((w) => (
          <li key={w.name} class="item">
            <div>
              <p>
                <strong>{words(w.name)}</strong> <Status of={w.on ? "enabled" : "ended"} say={w.on ? "on" : "off"} />
              </p>
              <p class="dim">{w.does}</p>
            </div>
            <div class="acts">
              <Act
                call={projectUpdate}
                input={{ ...p.at, host: p.host, [w.name]: !w.on }}
                confirm={w.name === "enabled" ? "Turn it off? Its tasks wait, and new ones are refused." : undefined}
                done={() => {
                  void one.load();
                  p.changed();
                  return `${words(w.name)} is ${w.on ? "off" : "on"}.`;
                }}
              >
                Turn {w.on ? "off" : "on"}
              </Act>
            </div>
          </li>
        ))}
      </ul>
      {p.host === "builtin" && <Branch at={p.at} of={p.of} changed={p.changed} />}
      <h2>What the account holds it to</h2>
      <div class="scroll" tabIndex={0}>
        <table class="bars">
          <tbody>
            {flat(s.floors).map(([k, v]) => (
              <tr key={k}>
                <th scope="row">{words(k)}</th>
                <td>{inert(v)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {s.policy.fallback && <p class="hold">{inert(s.policy.fallback)}</p>}
      <Clamps all={s.policy.clamped} />
    </>
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
