// The reviews of a repository: verdicts, how often findings were right, and what
// reviews were told not to say again.
import { reviewList, reviewRuleDelete, reviewRules, type ReviewRule, type Reviews } from "../client.gen";
import { useAgain, useList, useOne } from "../list";
import type { PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Act, Coming, Empty, Fact, Facts, Head, More, Trouble } from "../ui/parts";
import { words } from "../ui/status";
import { Time } from "../ui/time";
import { brain, verdict } from "./reviewed";

export default function ReviewsPage(p: PageProps) {
  const { owner, repo } = p.params as { owner: string; repo: string },
    key = owner + "/" + repo;
  const one = useOne<Reviews>(key, (signal) => reviewList({ owner, repo }, { signal })),
    d = one.value.value;
  const rules = useList<ReviewRule>(key, (cursor, signal) =>
    reviewRules({ owner, repo, cursor, per_page: 100 }, { signal }),
  );
  useAgain(
    "prs",
    (x) => x.row?.repo === key,
    () => void one.load(),
  );
  return (
    <>
      <Head title={`Reviews of ${key}`}>
        <span class="grow" />
        <a href={"/ui/repos/" + key}>The repository</a>
      </Head>
      {!d ? (
        <Coming of={one} />
      ) : (
        <>
          <Facts>
            <Fact name="Findings that were right">
              <span class="num">
                {d.precision.n} of {d.precision.d}
              </span>
            </Fact>
            <Fact name="Posted">
              <span class="num">{d.precision.posted}</span>
            </Fact>
            <Fact name="Fixed">
              <span class="num">{d.precision.fixed}</span>
            </Fact>
            <Fact name="Dismissed">
              <span class="num">{d.precision.dismissed}</span>
            </Fact>
          </Facts>
          {d.data.length === 0 ? (
            <Empty>Nothing was reviewed yet.</Empty>
          ) : (
            <div class="scroll" tabIndex={0} role="region" aria-label="Reviews">
              <table class="full narrows">
                <thead>
                  <tr>
                    <th>Pull request</th>
                    <th>Verdict</th>
                    <th>Head</th>
                    <th>Kept findings</th>
                    <th>Model</th>
                    <th>Begun</th>
                  </tr>
                </thead>
                <tbody>
                  {d.data.map((r) => (
                    <tr key={r.id}>
                      <td>
                        <a href={`/ui/prs/${r.pr_id}?tab=review`}>
                          #{r.number} {inert(r.title)}
                        </a>
                      </td>
                      <td>
                        {verdict(r)}
                        {r.note && <small> {inert(r.note)}</small>}
                      </td>
                      <td>
                        <code>{r.head_sha.slice(0, 10)}</code>
                      </td>
                      <td class="num" data-name="Kept findings">
                        {r.findings_kept ?? "–"}
                      </td>
                      <td>{brain(r)}</td>
                      <td>
                        <Time at={r.created_at} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
          {d.has_more && <p class="dim">Older ones are on the pages of their pull requests.</p>}
        </>
      )}
      <h2>What is not said again</h2>
      {rules.ids.value.length === 0 ? (
        rules.state.value === "failed" ? (
          <Trouble error={new Error(rules.error.value)} again={() => void rules.load()} />
        ) : (
          <Empty>No finding was dismissed for the repository.</Empty>
        )
      ) : (
        <ul class="cards">
          {rules.ids.value.map((id) => {
            const r = rules.rows.get(id)!.value;
            return (
              <li key={id} class="item">
                <div>
                  <p>
                    <strong>{inert(r.claim)}</strong>
                  </p>
                  <p class="dim">
                    {words(r.kind)} · <code>{inert(r.symbol)}</code> · <Time at={r.created_at} />
                  </p>
                  {r.reason && <p>{inert(r.reason)}</p>}
                </div>
                <div class="acts">
                  <Act
                    call={reviewRuleDelete}
                    input={{ owner, repo, id }}
                    done={() => {
                      void rules.load();
                      return "Reviews may say it again.";
                    }}
                  >
                    Allow again
                  </Act>
                </div>
              </li>
            );
          })}
        </ul>
      )}
      <More of={rules} />
    </>
  );
}
