// The issues of a repository, and what triage made of each.
import { issueList, type Issue } from "../client.gen";
import { useList } from "../list";
import { query, setQuery, type PageProps } from "../route";
import { useFresh } from "../ui/every";
import { inert } from "../ui/ansi";
import { Head, Tabs } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Table } from "../ui/table";
import { Time } from "../ui/time";

const shows = ["open", "closed", "all"] as const,
  triages = ["none", "filed", "triaged", "dropped", "escalated", "handed_off"] as const;

export default function Issues(p: PageProps) {
  const { owner, repo } = p.params as { owner: string; repo: string },
    show = query().get("show") ?? "open",
    triage = query().get("triage") ?? "";
  const list = useList<Issue>(owner + "/" + repo + show + triage, (cursor, signal) =>
    issueList(
      {
        owner,
        repo,
        cursor,
        per_page: 100,
        filter: [...(show === "all" ? [] : ["state:" + show]), ...(triage ? ["triage:" + triage] : [])],
      },
      { signal },
    ),
  );
  useFresh(30, list);
  return (
    <section class="room">
      <Head title={`Issues of ${owner}/${repo}`} count={list.count}>
        <Tabs label="Show" all={shows} at={show} to={(s) => setQuery({ show: s === "open" ? "" : s })} />
        <select aria-label="Triage" value={triage} onChange={(e) => setQuery({ triage: e.currentTarget.value })}>
          <option value="">Any triage</option>
          {triages.map((t) => (
            <option key={t} value={t}>
              {words(t)}
            </option>
          ))}
        </select>
        <span class="grow" />
        <a href={`/ui/repos/${owner}/${repo}`}>The repository</a>
      </Head>
      <Table
        list={list}
        id="issues"
        label="Issues"
        widths="110px minmax(0,1fr) 80px 130px minmax(0,160px) 90px 80px"
        href={(i) => `/ui/repos/${owner}/${repo}/issues/${i.id}`}
        empty={show === "open" && !triage ? "No issue is open. The built-in host keeps none." : "No issue fits."}
        columns={[
          { name: "State", cell: (i) => <Status of={i.state} noun="issue" /> },
          { name: "Title", wide: true, cell: (i) => inert(i.title) },
          { name: "Number", class: "num less", cell: (i) => (i.number === null ? "–" : "#" + i.number) },
          {
            name: "Triage",
            class: "less",
            cell: (i) =>
              i.triage === "none" ? (
                "–"
              ) : (
                <Status of={i.triage === "triaged" ? "became_tasks" : i.triage} say={words(i.triage)} />
              ),
          },
          { name: "Labels", class: "dim less", cell: (i) => inert(i.labels.join(", ")) },
          { name: "Comments", class: "num less", cell: (i) => i.comments },
          { name: "Age", class: "dim end", cell: (i) => <Time at={i.created_at} suffix={false} /> },
        ]}
      />
    </section>
  );
}
