// The flow of work over days: what came to its end, how long it took, and what it waited for.
import { overviewFlow, type OverviewFlow } from "../client.gen";
import { Ended, Lead, Queue } from "../cards/flow";
import { useOne } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { useEvery } from "../ui/every";
import { Coming, Head } from "../ui/parts";

const windows = [7, 30, 90];

export default function FlowPage() {
  const days = windows.find((d) => String(d) === query().get("days")) ?? 30,
    repo = query().get("repo") ?? "";
  const one = useOne<OverviewFlow>(`flow${days} ${repo}`, (signal) =>
      overviewFlow({ days, ...(repo && { repo }) }, { signal }),
    ),
    f = one.value.value;
  useEvery(60, () => void one.load(), [one]);
  return (
    <>
      <Head title="Flow of work">
        {repo && (
          <span class="dim">
            of <a href={"/ui/repos/" + repo}>{inert(repo)}</a>
          </span>
        )}
        <span class="grow" />
        {repo && (
          <button type="button" onClick={() => setQuery({ repo: "" })}>
            Of all repositories
          </button>
        )}
        <a href="/ui/flow/whatif">What if</a>
        <span class="seg" role="group" aria-label="Days">
          {windows.map((d) => (
            <button
              key={d}
              type="button"
              aria-pressed={d === days}
              onClick={() => setQuery({ days: d === 30 ? "" : String(d) })}
            >
              {d} days
            </button>
          ))}
        </span>
      </Head>
      {!f ? (
        <Coming of={one} />
      ) : (
        <div class="grid12">
          <Ended of={f} />
          <Lead of={f} />
          <Queue of={f} />
        </div>
      )}
    </>
  );
}
