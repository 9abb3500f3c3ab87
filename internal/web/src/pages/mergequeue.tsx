// The merge queue of a repository: what is tried together, and what waits.
import { prQueue, type MergeMember, type MergeQueue } from "../client.gen";
import { useAgain, useOne } from "../list";
import type { Patch } from "../live";
import type { PageProps } from "../route";
import { Coming, Empty, Head } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";

export default function Queue(p: PageProps) {
  const { owner, repo } = p.params as { owner: string; repo: string },
    full = owner + "/" + repo,
    one = useOne<MergeQueue>(full, (signal) => prQueue({ owner, repo }, { signal })),
    q = one.value.value;
  const own = (x: Patch) => x.row?.repo === full,
    again = () => void one.load();
  useAgain("prs", own, again);
  useAgain("ci", own, again);
  return (
    <>
      <Head title={`Merge queue of ${owner}/${repo}`}>
        <span class="grow" />
        <a href={`/ui/repos/${owner}/${repo}`}>The repository</a>
      </Head>
      {!q ? (
        <Coming of={one} />
      ) : (
        <>
          {q.batches.length === 0 && q.waiting.length === 0 && (
            <Empty>
              Nothing waits to be merged. Where the policy file says <code>merge.queue: batch</code>, approved pull
              requests are tried together here.
            </Empty>
          )}
          {q.batches.map((b) => (
            <section key={b.id}>
              <h2>
                Batch into {b.base_ref} <Status of={b.state} />
              </h2>
              <p class="dim">
                try {b.try}
                {b.sha && (
                  <>
                    {" "}
                    · <code>{b.sha.slice(0, 10)}</code>
                  </>
                )}{" "}
                · begun <Time at={b.created_at} />
              </p>
              <Members all={b.members} />
            </section>
          ))}
          {q.waiting.length > 0 && (
            <>
              <h2>Waiting</h2>
              <Members all={q.waiting} />
            </>
          )}
        </>
      )}
    </>
  );
}

function Members(p: { all: MergeMember[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Pull requests">
      <table class="full narrows">
        <thead>
          <tr>
            <th>Place</th>
            <th>Pull request</th>
            <th>Head</th>
            <th>Into</th>
            <th>State</th>
            <th>Since</th>
          </tr>
        </thead>
        <tbody>
          {p.all.map((m) => (
            <tr key={m.pr_id}>
              <td class="num">{m.place.position}</td>
              <td>
                <a href={"/ui/prs/" + m.pr_id}>#{m.number}</a>
              </td>
              <td>
                <code>{m.head_sha.slice(0, 10)}</code>
              </td>
              <td>{m.base_ref}</td>
              <td>
                {words(m.place.state)}
                {m.place.queue === "host" && " at the host"}
              </td>
              <td>
                <Time at={m.place.at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
