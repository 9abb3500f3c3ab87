// What happens in a repository: now, and within some days.
import { said } from "../api";
import { ciFlakes, projectOverview, type RepoOverview } from "../client.gen";
import { useOne } from "../list";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { usd } from "../ui/money";
import { Empty, Figure, Loading, Trouble } from "../ui/parts";
import { Status } from "../ui/status";
import { Time } from "../ui/time";
import { Health } from "./health";

type At = { owner: string; repo: string };

export function Overview(p: { at: At; enabled: boolean }) {
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
      <Health at={p.at} />
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
