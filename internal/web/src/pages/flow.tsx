// The flow of work over days: what came to its end, how long it took, and what it waited for.
import { overviewFlow, type OverviewFlow } from "../client.gen";
import { Ended, Lead, Queue } from "../cards/flow";
import { Success } from "../cards/success";
import { useOne } from "../list";
import { query, setQuery } from "../route";
import { useRepos } from "../whole";
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
    f = one.value.value,
    repos = useRepos().value.value?.data ?? [];
  useEvery(60, () => void one.load(), [one]);
  return (
    <>
      <Head title="Flow of work">
        {(repo || repos.length > 1) && (
          <select aria-label="Repository" value={repo} onChange={(e) => setQuery({ repo: e.currentTarget.value })}>
            <option value="">Every repository</option>
            {[...new Set([...(repo ? [repo] : []), ...repos.map((r) => r.full_name)])].map((r) => (
              <option key={r} value={r}>
                {inert(r)}
              </option>
            ))}
          </select>
        )}
        <span class="grow" />
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
          <Success of={f} />
        </div>
      )}
    </>
  );
}
