// What happened since yesterday.
import { overviewDay, prAll, type PullRequest } from "../client.gen";
import { useList, useOne } from "../list";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { useEvery } from "../ui/every";
import { usd } from "../ui/money";
import { Coming, Empty, More } from "../ui/parts";
import { Status } from "../ui/status";
import { Time } from "../ui/time";
import { rowsOf } from "./wrong";

export function Since() {
  const one = useOne("day", (signal) => overviewDay({}, { signal }), { counts: ["prs", "tasks"] });
  const merged = useList<PullRequest>(
    "m",
    (cursor, signal) =>
      may(prAll)
        ? prAll({ cursor, filter: ["merged:24h"], per_page: 20 }, { signal })
        : Promise.resolve({ data: [], next_cursor: null }),
    {
      topic: "prs",
      fits: (r) => r.state === "merged" && !!r.merged_at && Date.now() - Date.parse(r.merged_at) < 86_400_000,
    },
  );
  useEvery(60, () => void one.load(), [one]);
  const repos = one.value.value?.repos.filter((r) => r.repo || r.merged_prs || r.filed_tasks || Number(r.cost_usd));
  return (
    <>
      <h2 id="since">Since yesterday</h2>
      {!repos ? (
        <Coming of={one} />
      ) : repos.length === 0 ? (
        <Empty>Nothing happened.</Empty>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">Repository</th>
              <th scope="col" class="end">
                Merged
              </th>
              <th scope="col" class="end">
                Filed
              </th>
              <th scope="col" class="end">
                Spent
              </th>
            </tr>
          </thead>
          <tbody>
            {repos.map((r) => (
              <tr key={r.repo}>
                <th scope="row">{r.repo ? <a href={"/ui/repos/" + r.repo}>{inert(r.repo)}</a> : "of no repository"}</th>
                <td class="num">{r.merged_prs}</td>
                <td class="num">{r.filed_tasks ?? "–"}</td>
                <td class="num">{usd(r.cost_usd)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {merged.ids.value.length > 0 && (
        <ul class="cards" id="merged">
          {rowsOf(merged).map((r) => (
            <li key={r.id} class="item">
              <div>
                <a href={"/ui/prs/" + r.id}>{inert(r.title)}</a>{" "}
                <span class="dim">
                  {r.repo}#{r.number}
                </span>
              </div>
              <div class="acts">
                <Status of="merged" /> <Time at={r.merged_at} />
              </div>
            </li>
          ))}
        </ul>
      )}
      <More of={merged} />
    </>
  );
}
