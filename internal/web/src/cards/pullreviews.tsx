// The checks of a pull request, and what its reviews found.
import {
  ciRuns,
  reviewRerun,
  reviewStatus,
  type Check,
  type Finding,
  type PullRequest,
  type ReviewRun,
} from "../client.gen";
import { FindingCard } from "../cards/finding";
import { useAgain, useList, type List } from "../list";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { Act, Empty, Loading, More, Trouble } from "../ui/parts";
import { Status } from "../ui/status";
import { Table } from "../ui/table";
import { Time, Took } from "../ui/time";
import { brain, verdict } from "../pages/reviewed";

export function Checks(p: { id: string }) {
  const list = useList<Check>(
    p.id + "checks",
    (cursor, signal) => ciRuns({ cursor, per_page: 50, filter: ["pr:" + p.id] }, { signal }),
    { topic: "ci", fits: (c) => c.pr_id === p.id },
  );
  if (!may(ciRuns))
    return (
      <Empty>
        To see checks you need the scope <code>{ciRuns.scope}</code>.
      </Empty>
    );
  return (
    <div class="boxed">
      <Table
        list={list}
        id="checks"
        part
        label="Checks"
        widths="130px minmax(0,1fr) 100px 70px 90px 90px"
        href={(c) => "/ui/ci?check=" + c.id}
        empty="No check has run. The policy file of the repository names one."
        columns={[
          { name: "Status", cell: (c) => <Status of={c.status} /> },
          { name: "Command", wide: true, cell: (c) => <code>{inert(c.command)}</code> },
          { name: "Commit", class: "less", cell: (c) => <code>{c.sha.slice(0, 10)}</code> },
          { name: "Exit", class: "num less", cell: (c) => c.exit_code ?? "–" },
          { name: "Took", class: "num less", cell: (c) => <Took from={c.started_at} to={c.finished_at} /> },
          { name: "Begun", class: "dim end", cell: (c) => <Time at={c.created_at} suffix={false} /> },
        ]}
      />
    </div>
  );
}

export function Review(p: { of: PullRequest; findings: List<Finding>; rows: Finding[] }) {
  const id = p.of.id,
    runs = useList<ReviewRun>(id + "runs", (cursor, signal) => reviewStatus({ id, cursor, per_page: 50 }, { signal }));
  useAgain("prs", id, () => void runs.refresh());
  useAgain(
    "tasks",
    (x) => x.row?.pr_id === id,
    () => void runs.refresh(),
  );
  return (
    <>
      <div class="spread">
        <h2>Reviews</h2>
        <div class="acts">
          <Act
            call={reviewRerun}
            input={{ id }}
            disabled={p.of.state !== "open"}
            done={(o) => {
              void runs.load();
              return o.rerun ? "A review of this head begins." : "This head is being reviewed already.";
            }}
          >
            Review again
          </Act>
        </div>
      </div>
      {runs.state.value === "loading" ? (
        <Loading />
      ) : runs.state.value === "failed" ? (
        <Trouble error={new Error(runs.error.value)} again={() => void runs.load()} />
      ) : runs.ids.value.length === 0 ? (
        <Empty>It was not reviewed.</Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Reviews">
          <table class="full narrows">
            <thead>
              <tr>
                <th>Verdict</th>
                <th>Head</th>
                <th>Kept findings</th>
                <th>Model</th>
                <th>Task</th>
                <th>Begun</th>
              </tr>
            </thead>
            <tbody>
              {runs.ids.value
                .map((x) => runs.rows.get(x)!.value)
                .map((r) => (
                  <tr key={r.id}>
                    <td>
                      {verdict(r)}
                      {r.note && <small> {inert(r.note)}</small>}
                    </td>
                    <td>
                      <code>{r.head_sha.slice(0, 10)}</code>
                      {r.since_sha && <small> since {r.since_sha.slice(0, 7)}</small>}
                    </td>
                    <td class="num">
                      {r.findings_kept ?? "–"}
                      {r.more > 0 && <small> and {r.more} more</small>}
                      {r.unlooked > 0 && <small> {r.unlooked} not looked at again</small>}
                    </td>
                    <td>{brain(r)}</td>
                    <td>
                      {r.task_id && (
                        <a href={"/ui/tasks/" + r.task_id}>
                          <code>{r.task_id.slice(0, 8)}</code>
                        </a>
                      )}
                    </td>
                    <td>
                      <Time at={r.created_at} />
                    </td>
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
      )}
      <h2>Findings</h2>
      {p.findings.error.value && (
        <Trouble error={new Error(p.findings.error.value)} again={() => void p.findings.load()} />
      )}
      {p.rows.length === 0
        ? p.findings.state.value === "ready" && <Empty>No finding was kept.</Empty>
        : p.rows.map((f) => (
            <FindingCard key={f.id} of={f} full={p.of.repo} head={p.of.head_sha} done={() => void p.findings.load()} />
          ))}
      <More of={p.findings} />
    </>
  );
}
