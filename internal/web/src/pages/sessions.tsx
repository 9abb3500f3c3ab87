// Sessions: every conversation with a model, what it was for and what it cost.
import { sessionList, sessionListByProject, type Session } from "../client.gen";
import { SessionTable } from "../cards/sessions";
import { useList } from "../list";
import { query, setQuery } from "../route";
import { useRepos } from "../whole";
import { inert } from "../ui/ansi";
import { table } from "../own";
import { Head, NoFit, Tabs } from "../ui/parts";
import { words } from "../ui/status";

type Show = { filter: string[]; fits: (s: Session) => boolean };
const shows: Record<string, Show> = table({
  all: { filter: [], fits: () => true },
  running: { filter: ["state:running"], fits: (s) => !s.ended_at },
  failed: { filter: ["outcome:failed,lost"], fits: (s) => s.outcome === "failed" || s.outcome === "lost" },
  unpriced: { filter: ["cost:unknown"], fits: (s) => s.cost_usd === null && s.calls > 0 },
});
const outcomes = ["succeeded", "failed", "interrupted", "lost"] as const;

// Choice is one of several values of a filter, in the address.
function Choice(p: {
  name: string;
  label: string;
  every: string;
  all: readonly string[];
  say?: (v: string) => string;
}) {
  const at = query().get(p.name) ?? "",
    all = at && !p.all.includes(at) ? [at, ...p.all] : p.all;
  return (
    <select aria-label={p.label} value={at} onChange={(e) => setQuery({ [p.name]: e.currentTarget.value })}>
      <option value="">{p.every}</option>
      {all.map((v) => (
        <option key={v} value={v}>
          {p.say?.(v) ?? inert(v)}
        </option>
      ))}
    </select>
  );
}

export default function Sessions() {
  const show = query().get("show") ?? "all",
    repo = query().get("repo") ?? "",
    model = query().get("model") ?? "",
    outcome = show === "failed" ? "" : (query().get("outcome") ?? ""),
    own = shows[show] ?? shows["all"]!,
    [owner, name] = repo.split("/");
  const filter = [...own.filter, ...(model ? ["model:" + model] : []), ...(outcome ? ["outcome:" + outcome] : [])];
  const list = useList<Session>(
    filter + "\n" + repo,
    (cursor, signal) =>
      repo
        ? sessionListByProject({ owner: owner!, repo: name ?? "", cursor, per_page: 100, filter }, { signal })
        : sessionList({ limit: 200, filter }, { signal }),
    {
      topic: "sessions",
      fits: (s) =>
        own.fits(s) &&
        (!repo || s.repo === repo) &&
        (!model || s.model === model) &&
        (!outcome || s.outcome === outcome),
    },
  );
  const repos = useRepos();
  const models = [...new Set(list.ids.value.flatMap((id) => list.rows.get(id)?.peek().model ?? []))].sort();
  return (
    <section class="room">
      <Head title="Sessions" count={list.count}>
        <Tabs
          label="Show"
          all={Object.keys(shows)}
          at={show}
          to={(s) => setQuery({ show: s === "all" ? "" : s, outcome: s === "failed" ? "" : outcome })}
        />
        <Choice
          name="repo"
          label="Repository"
          every="every repository"
          all={(repos.value.value?.data ?? []).map((r) => r.full_name)}
        />
        <Choice name="model" label="Model" every="every model" all={models} />
        {show !== "failed" && (
          <Choice name="outcome" label="Outcome" every="every outcome" all={outcomes} say={words} />
        )}
      </Head>
      <SessionTable
        list={list}
        repo={!repo}
        empty={
          show !== "all" || repo || model || outcome ? (
            <NoFit
              noun="session"
              of={[show !== "all" && words(show), repo, inert(model), words(outcome)]}
              clear="/ui/sessions"
            />
          ) : (
            "Nothing has called a model yet."
          )
        }
      />
    </section>
  );
}
