// Pull requests of all repositories: their checks, their repair, who waits for whom.
import { prAll, type PullRequest } from "../client.gen";
import { Reviewed } from "../cards/reviewed";
import { useList } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { Counts, Head, Tabs } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Table } from "../ui/table";
import { Time } from "../ui/time";

const shows: Record<string, string> = { open: "open", opening: "opening", merged: "merged", closed: "closed", all: "" };

// repair says how far the repair of a pull request by agents has come.
export function repair(p: PullRequest): string {
  const b = p.babysit, left = (b.ci_rounds_max - b.ci_rounds_used) + (b.conflict_rounds_max - b.conflict_rounds_used) + (b.review_rounds_max - b.review_rounds_used);
  return b.state === "off" || b.state === "done" ? "" : `${words(b.state)}, ${left} left`;
}

export default function PullRequests() {
  const show = query().get("show") ?? "open", repo = query().get("repo") ?? "", state = shows[show] ?? "";
  const list = useList<PullRequest>(show + "\n" + repo, (cursor, signal) => prAll({ cursor, per_page: 100, filter: [...(state ? ["state:" + state] : []), ...(repo ? ["repo:" + repo] : [])] }, { signal }),
    { topic: "prs", fits: (p) => (!state || p.state === state) && (!repo || p.repo === repo) });
  return <section class="fill">
    <Head title="Pull requests" count={list.ids.value.length}><Tabs label="Show" all={Object.keys(shows)} at={show} to={(s) => setQuery({ show: s === "open" ? "" : s })} /></Head>
    {repo && <p>Only those of {inert(repo)}. <a href={"/ui/prs" + (show === "open" ? "" : "?show=" + show)}>Show all repositories</a></p>}
    <Table list={list} id="prs" label="Pull requests" widths="120px minmax(0,1fr) minmax(0,170px) 100px 110px minmax(0,130px) minmax(0,150px) minmax(0,170px) 80px" href={(p) => "/ui/prs/" + p.id}
      empty={show === "open" && !repo ? "No pull request is open. Agents open one when their work changed something." : <>No pull request fits. <a href="/ui/prs?show=all">Show all</a>.</>}
      columns={[
        { name: "State", cell: (p) => <Status of={p.state} noun="pr" say={p.draft && p.state === "open" ? "draft" : words(p.state)} /> },
        { name: "Title", wide: true, cell: (p) => inert(p.title) },
        { name: "Repository", class: "dim less", cell: (p) => p.repo + (p.number ? "#" + p.number : "") },
        { name: "Lines", class: "dim less", cell: (p) => p.size && <Counts of={p.size} /> },
        { name: "Checks", class: "less", cell: (p) => <Status of={p.checks} noun="checks" /> },
        { name: "Review", class: "dim less", cell: (p) => <Reviewed of={p.review} /> },
        { name: "Repair", class: "dim less", cell: repair },
        { name: "Waits for you", class: "less", cell: (p) => p.needs_person ? <Status of="needs_person" say={words(p.needs_person.why)} /> : "" },
        { name: "Age", class: "dim end", cell: (p) => <Time at={p.created_at} suffix={false} /> },
      ]} />
  </section>;
}
