// Pull requests of all repositories: their checks, their repair, who waits for whom.
import { prAll, type PullRequest } from "../client.gen";
import { PullPane } from "../cards/panes";
import { PullState } from "../cards/pullstate";
import { repair } from "../cards/repair";
import { Reviewed } from "../cards/reviewed";
import { useList } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { PaneSwitch } from "../ui/pane";
import { Counts, Head, NoFit, Search, Tabs } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Table, type Column } from "../ui/table";
import { Time } from "../ui/time";
import { table } from "../own";

const shows: Record<string, string> = table({
  open: "open",
  opening: "opening",
  merged: "merged",
  closed: "closed",
  all: "",
});

const told: Column<PullRequest> = { name: "State", cell: (p) => <PullState of={p} /> };

export default function PullRequests() {
  const show = query().get("show") ?? "open",
    repo = query().get("repo") ?? "",
    q = query().get("q") ?? "",
    state = shows[show] ?? "";
  const list = useList<PullRequest>(
    show + "\n" + repo + "\n" + q,
    (cursor, signal) =>
      prAll(
        {
          cursor,
          per_page: 100,
          q: q || undefined,
          filter: [...(state ? ["state:" + state] : []), ...(repo ? ["repo:" + repo] : [])],
        },
        { signal },
      ),
    {
      topic: "prs",
      fits: (p) =>
        (!state || p.state === state) &&
        (!repo || p.repo === repo) &&
        (!q || p.title.toLowerCase().includes(q.toLowerCase())),
    },
  );
  return (
    <section class="room">
      <Head title="Pull requests" count={list.count}>
        <Tabs label="Show" all={Object.keys(shows)} at={show} to={(s) => setQuery({ show: s === "open" ? "" : s })} />
        <Search label="Filter pull requests" value={q} to={(t) => setQuery({ q: t })} now />
        <span class="grow" />
        <PaneSwitch />
      </Head>
      {repo && (
        <p>
          Only those of {inert(repo)}.{" "}
          <a href={"/ui/prs" + (show === "open" ? "" : "?show=" + show)}>Show all repositories</a>
        </p>
      )}
      <Table
        list={list}
        id="prs"
        label="Pull requests"
        widths={
          (state ? "" : "120px ") +
          "minmax(0,1fr) minmax(0,170px) 84px 110px minmax(0,130px) minmax(0,150px) minmax(110px,170px) 80px"
        }
        href={(p) => "/ui/prs/" + p.id}
        pane={PullPane}
        empty={
          show === "open" && !repo && !q ? (
            "No pull request is open. Agents open one when their work changed something."
          ) : (
            <NoFit
              noun="pull request"
              of={[show !== "all" && words(show), inert(repo), q && `“${q}”`]}
              clear="/ui/prs?show=all"
            />
          )
        }
        columns={[
          ...(state ? [] : [told]),
          {
            name: "Title",
            wide: true,
            cell: (p) => (
              <>
                {inert(p.title)}
                {p.draft && p.state === "open" && <small> · draft</small>}
              </>
            ),
          },
          { name: "Repository", class: "dim less", rank: 3, cell: (p) => p.repo + (p.number ? "#" + p.number : "") },
          { name: "Lines", class: "dim less", rank: 1, cell: (p) => p.size && <Counts of={p.size} /> },
          { name: "Checks", class: "less", rank: 5, cell: (p) => <Status of={p.checks} noun="checks" /> },
          { name: "Review", class: "dim less", rank: 4, cell: (p) => <Reviewed of={p.review} /> },
          { name: "Repair", class: "dim less", cell: repair },
          {
            name: "Waits for you",
            class: "less",
            rank: 4,
            cell: (p) => (p.needs_person ? <Status of="needs_person" say={words(p.needs_person.why)} /> : ""),
          },
          { name: "Age", class: "dim end", cell: (p) => <Time at={p.created_at} suffix={false} /> },
        ]}
      />
    </section>
  );
}
