// Plans: work that was cut into groups of tasks, in numbered pages.
import { useEffect, useRef, useState } from "preact/hooks";
import { planList, planStart, type Plan, type PlanPage, type Repository } from "../client.gen";
import { useAgain, useOne } from "../list";
import { go, query, setQuery } from "../route";
import { repos as everyRepo } from "../whole";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { Text } from "../ui/inputs";
import { useKeys } from "../ui/keys";
import { Coming, Empty, Head, NoFit, Search, Tabs } from "../ui/parts";
import { Status } from "../ui/status";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";

const buckets = ["all", "held", "active", "stalled", "done", "cancelled"] as const;
type Bucket = Plan["bucket"];

// Part is how much of a plan is merged.
export function Part(p: { merged: number; total: number }) {
  return (
    <span class="num">
      <span class="part" aria-hidden="true">
        <span style={{ width: `${p.total ? (100 * p.merged) / p.total : 0}%` }} />
      </span>
      {p.merged} of {p.total} merged
    </span>
  );
}

export default function Plans() {
  const bucket = query().get("show") ?? "all",
    q = query().get("q") ?? "",
    repo = query().get("repo") ?? "",
    page = Math.max(1, Number(query().get("page")) || 1),
    [open, setOpen] = useState(false);
  const one = useOne([bucket, q, repo, page].join("\n"), (signal) =>
    planList(
      {
        page,
        per_page: 25,
        bucket: bucket === "all" ? undefined : (bucket as Bucket),
        q: q || undefined,
        repo: repo || undefined,
      },
      { signal },
    ),
  );
  useAgain("plans", undefined, () => void one.load());
  // what was shown stays until the answer to another filter comes
  const shown = useRef<PlanPage | undefined>(undefined),
    d = one.value.value ?? (one.error.value ? undefined : shown.current),
    turn = (to: number) => setQuery({ page: to > 1 ? String(to) : "" });
  shown.current = d;
  useKeys([
    {
      keys: "[",
      does: "previous page",
      run: () => {
        if (page > 1) turn(page - 1);
      },
    },
    {
      keys: "]",
      does: "next page",
      run: () => {
        if (d && page < d.pages) turn(page + 1);
      },
    },
  ]);
  return (
    <>
      <Head title="Plans" count={d?.total}>
        <Tabs label="Show" all={buckets} at={bucket} to={(s) => setQuery({ show: s === "all" ? "" : s, page: "" })} />
        <Search label="Filter plans" value={q} to={(t) => setQuery({ q: t, page: "" })} />
        {d && d.repos.length > 1 && (
          <select
            aria-label="Repository"
            value={repo}
            onChange={(e) => setQuery({ repo: e.currentTarget.value, page: "" })}
          >
            <option value="">All repositories</option>
            {d.repos.map((r) => (
              <option key={r}>{r}</option>
            ))}
          </select>
        )}
        <span class="grow" />
        <button type="button" class="main" {...gate(planStart, () => setOpen(true))}>
          New plan
        </button>
      </Head>
      {d && d.total > 0 && (
        <p class="dim">
          {buckets
            .slice(1)
            .map((b) => `${d.buckets[b as Bucket]} ${b}`)
            .join(" · ")}
        </p>
      )}
      {!d ? (
        <Coming of={one} />
      ) : d.data.length === 0 ? (
        <Empty>
          {q || repo || bucket !== "all" ? (
            <NoFit noun="plan" of={[bucket !== "all" && bucket, inert(repo), q && `“${q}”`]} clear="/ui/plans" />
          ) : (
            <>
              No plans yet. Start one here, or <code>yardmaster plan start</code>
            </>
          )}
        </Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Plans">
          <table class="full narrows">
            <thead>
              <tr>
                <th>Title</th>
                <th>State</th>
                <th>Repositories</th>
                <th>Merged</th>
                <th>Held</th>
                <th>Last activity</th>
              </tr>
            </thead>
            <tbody>
              {d.data.map((x) => (
                <tr key={x.id}>
                  <td>
                    <a href={"/ui/plans/" + x.id}>{inert(x.title)}</a>
                    {x.note && <small> {inert(x.note)}</small>}
                  </td>
                  <td>
                    <Status of={x.bucket} />
                  </td>
                  <td class="dim">{x.repos.join(", ")}</td>
                  <td>
                    <Part merged={x.merged} total={x.total} />
                  </td>
                  <td class="num">{x.held_count > 0 && <span>{x.held_count} held</span>}</td>
                  <td>
                    <Time at={x.last_activity_at} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {d && d.pages > 1 && (
        <nav class="pager" aria-label="Pages">
          <button type="button" disabled={page <= 1} onClick={() => turn(page - 1)}>
            Previous
          </button>
          <span class="num">
            Page {d.page} of {d.pages}
          </span>
          <button type="button" disabled={page >= d.pages} onClick={() => turn(page + 1)}>
            Next
          </button>
        </nav>
      )}
      {open && <Start close={() => setOpen(false)} />}
    </>
  );
}

function Start(p: { close: () => void }) {
  const [repos, setRepos] = useState<Repository[]>([]),
    [all, setAll] = useState<string[]>([]);
  useEffect(() => {
    everyRepo().then(
      (r) => {
        const on = r.data.filter((x) => x.enabled);
        setRepos(on);
        if (on.length === 1) setAll([on[0]!.full_name]);
      },
      () => {},
    );
  }, []);
  const few = all.length < 2;
  return (
    <Dialog title="New plan" class="wide" close={p.close}>
      <Form
        call={planStart}
        submit="Start"
        keep
        read={(f) => ({
          ask: String(f.get("ask") ?? ""),
          ...(few ? { repo: all[0] ?? "" } : { repos: all }),
          return_context: f.has("context") || undefined,
          require_approval: few && f.has("approval") ? true : undefined,
        })}
        done={(o) => {
          p.close();
          tell("Scouts look at it first.");
          go(
            o.plan_id
              ? "/ui/plans/" + o.plan_id
              : o.fanout_id
                ? "/ui/plans/fanouts/" + o.fanout_id
                : o.task_id
                  ? "/ui/tasks/" + o.task_id
                  : "/ui/asks/" + o.raw_task_id,
          );
        }}
      >
        {(wrong) => (
          <>
            <Text name="ask" label="What is wanted" hint="in plain words" wrong={wrong} rows={6} focus />
            <fieldset>
              <legend>Repositories</legend>
              {repos.map((r) => (
                <label key={r.id} class="check">
                  <input
                    type="checkbox"
                    checked={all.includes(r.full_name)}
                    onChange={(e) =>
                      setAll(e.currentTarget.checked ? [...all, r.full_name] : all.filter((x) => x !== r.full_name))
                    }
                  />{" "}
                  {r.full_name}
                </label>
              ))}
              {(wrong("repo") ?? wrong("repos")) && (
                <em>{[...(wrong("repo") ?? []), ...(wrong("repos") ?? [])].join(", ")}</em>
              )}
            </fieldset>
            {few && (
              <label class="check">
                <input type="checkbox" name="approval" defaultChecked /> Hold it until somebody approves
              </label>
            )}
            <label class="check">
              <input type="checkbox" name="context" /> Only survey, plan nothing
            </label>
          </>
        )}
      </Form>
    </Dialog>
  );
}
