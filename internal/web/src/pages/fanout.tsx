// A fan-out: what scouts found in several repositories, with where they found it.
import { planContext, type FanoutContext } from "../client.gen";
import { useAgain, useOne } from "../list";
import type { PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Markdown, pieces } from "../ui/markdown";
import { Coming, Empty, Fact, Facts, Head } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Status } from "../ui/status";
import { Time } from "../ui/time";

export default function Fanout(p: PageProps) {
  const id = p.params.id!,
    one = useOne<FanoutContext>(id, (signal) => planContext({ fanoutId: id }, { signal }));
  const x = one.value.value;
  useAgain(
    "tasks",
    (t) => !!x?.repos.some((r) => r.task_id === t.id),
    () => void one.load(),
  );
  if (!x)
    return (
      <>
        <Head title="Survey" />
        <Coming of={one} />
      </>
    );
  return (
    <>
      <Head title="Survey">
        <Status of={x.status} />
      </Head>
      <Facts>
        <Fact name="Begun">
          <Time at={x.created_at} />
        </Fact>
        {x.still_surveying.length > 0 && <Fact name="Still surveyed">{x.still_surveying.join(", ")}</Fact>}
      </Facts>
      <Markdown text={x.ask} />
      <h2>Findings</h2>
      {x.claims.length === 0 ? (
        <Empty>Nothing was found yet.</Empty>
      ) : (
        <ul>
          {x.claims.map((c, i) => (
            <li key={i}>
              {pieces(c.text)} <small>{c.repos.join(", ")}</small>
              {c.citations.map((s) => (
                <div key={s}>
                  <code>{inert(s)}</code>
                </div>
              ))}
            </li>
          ))}
        </ul>
      )}
      <h2>Repositories</h2>
      {x.repos.map((r) => (
        <section key={r.task_id}>
          <h3>
            <a href={"/ui/repos/" + r.repo}>{r.repo}</a> <Status of={r.status} />
          </h3>
          <p>
            <a href={"/ui/tasks/" + r.task_id}>Its scout</a>
          </p>
          {r.summary && (
            <figure class="agent">
              <figcaption>Written by a program</figcaption>
              <Markdown text={r.summary} />
            </figure>
          )}
          {r.split_hints.length > 0 && (
            <>
              <h4>Could be split</h4>
              <ul>
                {r.split_hints.map((s) => (
                  <li key={s}>{pieces(s)}</li>
                ))}
              </ul>
            </>
          )}
          {r.handoffs.length > 0 && (
            <>
              <h4>For others</h4>
              <ul>
                {r.handoffs.map((s) => (
                  <li key={s}>{pieces(s)}</li>
                ))}
              </ul>
            </>
          )}
          {r.access_needed.length > 0 && (
            <>
              <h4>Access needed</h4>
              <ul>
                {r.access_needed.map((s) => (
                  <li key={s}>{pieces(s)}</li>
                ))}
              </ul>
            </>
          )}
        </section>
      ))}
      <Raw call={planContext} input={{ fanoutId: id }} of={x} />
    </>
  );
}
