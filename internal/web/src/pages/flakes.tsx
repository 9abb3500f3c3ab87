// The flakes of a repository: failures that came without a change being at fault.
import { ciFlakes, type Flakes } from "../client.gen";
import { useAgain, useOne } from "../list";
import type { PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Coming, Empty, Head } from "../ui/parts";
import { Time } from "../ui/time";

export default function FlakesPage(p: PageProps) {
  const { owner, repo } = p.params as { owner: string; repo: string },
    one = useOne<Flakes>(owner + "/" + repo, (signal) => ciFlakes({ owner, repo }, { signal })),
    d = one.value.value;
  // They are counted from the jobs of pull requests.
  useAgain(
    "prs",
    (x) => x.row?.repo === owner + "/" + repo,
    () => void one.load(),
  );
  return (
    <>
      <Head title={`Flakes of ${owner}/${repo}`} count={d?.data.length}>
        <span class="grow" />
        <a href={`/ui/repos/${owner}/${repo}`}>The repository</a>
      </Head>
      {!d ? (
        <Coming of={one} />
      ) : d.data.length === 0 ? (
        <Empty>No failure came and went without a change.</Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Flakes">
          <table class="full narrows">
            <thead>
              <tr>
                <th>Test</th>
                <th>Error</th>
                <th>Job</th>
                <th>Failed</th>
                <th>Last</th>
              </tr>
            </thead>
            <tbody>
              {d.data.map((f) => (
                <tr key={f.id}>
                  <td>
                    <code>{inert(f.test)}</code>
                    {f.often && <b class="bad"> often</b>}
                  </td>
                  <td>
                    <code>{inert(f.error)}</code>
                  </td>
                  <td class="dim">{inert(f.job)}</td>
                  <td class="num">
                    {f.seen} of {f.runs} runs
                  </td>
                  <td>
                    <Time at={f.last_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}
