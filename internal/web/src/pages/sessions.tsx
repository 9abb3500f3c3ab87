// Sessions: every conversation with a model, what it was for and what it cost.
import { projectList, sessionList, sessionListByProject, type Repository, type Session } from "../client.gen";
import { SessionTable } from "../cards/sessions";
import { useList, useOne } from "../list";
import { query, setQuery } from "../route";
import { may } from "../session";
import { Head, Tabs } from "../ui/parts";

const shows: Record<string, (s: Session) => boolean> = { all: () => true, running: (s) => !s.ended_at, failed: (s) => s.outcome === "failed" || s.outcome === "lost", unpriced: (s) => s.cost_usd === null && s.calls > 0 };
const none: { data: Repository[] } = { data: [] };

export default function Sessions() {
  const show = query().get("show") ?? "all", repo = query().get("repo") ?? "", own = shows[show] ?? shows["all"]!, [owner, name] = repo.split("/");
  const fits = (s: Session) => own(s) && (!repo || s.repo === repo);
  const list = useList<Session>(show + "\n" + repo, async (cursor, signal) => {
    const page = repo ? await sessionListByProject({ owner: owner!, repo: name ?? "", cursor, per_page: 100 }, { signal }) : await sessionList({ limit: 200 }, { signal });
    return { data: page.data.filter(own), next_cursor: page.next_cursor };
  }, { topic: "sessions", fits });
  const repos = useOne("repos", (signal) => may(projectList) ? projectList({ per_page: 100 }, { signal }) : Promise.resolve(none));
  return <section class="fill">
    <Head title="Sessions" count={list.ids.value.length}><Tabs label="Show" all={Object.keys(shows)} at={show} to={(s) => setQuery({ show: s === "all" ? "" : s })} />
      <select aria-label="Repository" value={repo} onChange={(e) => setQuery({ repo: e.currentTarget.value })}><option value="">every repository, the newest 200</option>{(repos.value.value?.data ?? []).map((r) => <option key={r.id} value={r.full_name}>{r.full_name}</option>)}</select></Head>
    <SessionTable list={list} repo={!repo} empty={show !== "all" || repo ? <>No session fits. <a href="/ui/sessions">Show all</a>.</> : "Nothing has called a model yet."} /></section>;
}
