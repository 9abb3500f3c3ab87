// One plan: its groups as a drawing and as a table, and what a person may do with it.
import { useEffect, useState } from "preact/hooks";
import {
  askList,
  planApprove,
  planBudgetSet,
  planCancel,
  planGet,
  planRegroup,
  planUnlink,
  taskList,
  type PlanDetail,
  type PlanGroup,
  type Task,
} from "../client.gen";
import { GroupText } from "../cards/group";
import { useAgain, useList, useOne } from "../list";
import type { PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Dag } from "../ui/dag";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { Choice, number, Text } from "../ui/inputs";
import { Markdown } from "../ui/markdown";
import { Act, Coming, Empty, Fact, Facts, Head, Id } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Mark, Status, toneOf, words } from "../ui/status";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";
import { Part } from "./plans";

const merged = (g: PlanGroup) => g.tasks.filter((t) => t.status === "merged" || t.status === "completed").length;
const over = (p: PlanDetail) => ["done", "failed", "cancelled"].includes(p.status);

const someTitles = 5;

function titles(all: PlanGroup[]) {
  const some = all.slice(0, all.length > someTitles + 1 ? someTitles : all.length).map((g) => inert(g.title)),
    rest = all.length - some.length;
  return some.join("; ") + (rest ? ` and ${rest} more` : "");
}

// effect says which groups that are held the approval starts, and which wait for others.
function effect(p: PlanDetail, starting: string) {
  const done = new Set(p.groups.filter((g) => g.status === "done").map((g) => g.id)),
    held = p.groups.filter((g) => g.status === "held"),
    first = held.filter((g) => g.upstream.every((u) => done.has(u.group_id))),
    later = held.filter((g) => !first.includes(g));
  return [
    first.length && starting + titles(first) + ".",
    later.length && `Waiting for others to be done: ${titles(later)}.`,
  ]
    .filter(Boolean)
    .join(" ");
}

const atFirst = 200; // rows of the table, which the others follow when they are asked for

export default function PlanPage(p: PageProps) {
  const id = p.params.id!,
    [dialog, setDialog] = useState<"" | "regroup" | PlanGroup>(""), // a group: its edges
    [read, setRead] = useState(""), // the group whose text is shown
    [rows, setRows] = useState(atFirst),
    [want, setWant] = useState(""); // the group whose row is to be shown
  const one = useOne<PlanDetail>(id, (signal) => planGet({ planId: id }, { signal }));
  const again = () => void one.load();
  const x = one.value.value;
  useAgain("plans", id, again);
  useAgain("tasks", (t) => !!x?.groups.some((g) => g.tasks.some((k) => k.id === t.id)), again);
  useEffect(() => {
    if (!want) return;
    const row = document.getElementById("g-" + want);
    row?.scrollIntoView({ block: "nearest" });
    row?.focus(); // its first link may lead to another group
    setWant("");
  }, [want]);
  if (!x)
    return (
      <>
        <Head title="Plan" />
        <Coming of={one} />
      </>
    );
  const title = new Map(x.groups.map((g) => [g.id, g.title])),
    held = x.bucket === "held",
    live = x.groups.filter((g) => g.status !== "superseded"),
    reading = x.groups.find((g) => g.id === read);
  const open = (g: string) => {
    setRows(Math.max(rows, x.groups.findIndex((k) => k.id === g) + 1));
    setWant(g);
  };
  return (
    <>
      <Head title={inert(x.title)}>
        <Status of={x.bucket} />
        <span class="grow" />
        {held && (
          <Act
            call={planApprove}
            input={{ planId: id }}
            class="main"
            done={(o) => {
              again();
              return o.kind === "approved" ? "Approved. " + effect(x, "Started: ") : "It was approved already.";
            }}
          >
            Approve
          </Act>
        )}
        {held && live[0] && (
          <button type="button" title="Read what its groups are asked to do" onClick={() => setRead(live[0]!.id)}>
            Read
          </button>
        )}
        {!over(x) && (
          <button type="button" {...gate(planRegroup, () => setDialog("regroup"))}>
            Regroup
          </button>
        )}
        {!over(x) && (
          <Act
            call={planCancel}
            input={{ planId: id }}
            confirm="Cancel the plan, and every task of it that is not over?"
            done={(o) => {
              again();
              return `Cancelled. ${o.stopped.length} stopped, ${o.already_finished.length} were over${o.reviews_not_stopped.length ? `, ${o.reviews_not_stopped.length} reviews go on` : ""}.`;
            }}
          >
            Cancel
          </Act>
        )}
      </Head>
      <Facts>
        <Fact name="Merged">
          <Part merged={x.merged} total={x.total} />
        </Fact>
        <Fact name="Repositories">
          {x.repos.map((r) => (
            <a key={r} href={"/ui/repos/" + r}>
              {r}{" "}
            </a>
          ))}
        </Fact>
        <Fact name="Revision">{x.revision}</Fact>
        {x.dir && (
          <Fact name="Directory">
            <code>{inert(x.dir)}</code>
            {x.commit_sha && <small> at {x.commit_sha.slice(0, 10)}</small>}
          </Fact>
        )}
        {x.ask_id && (
          <Fact name="Ask">
            <a href={"/ui/asks/" + x.ask_id}>open</a>
          </Fact>
        )}
        {x.scout_task_id && (
          <Fact name="Drafted by">
            <a href={"/ui/tasks/" + x.scout_task_id}>a scout</a>
          </Fact>
        )}
        <Fact name="Last activity">
          <Time at={x.last_activity_at} />
        </Fact>
        <Fact name="Id">
          <Id of={x.id} />
        </Fact>
      </Facts>
      {x.note && <p class="trouble">{inert(x.note)}</p>}
      {held && <p class="hold">It waits for approval. {effect(x, "Approving starts: ")}</p>}
      <h2>What waits for what</h2>
      {live.length === 0 ? (
        <Empty>It has no groups yet.</Empty>
      ) : (
        <>
          <Dag
            label="Groups of the plan"
            open={open}
            nodes={live.map((g) => ({
              id: g.id,
              up: g.upstream.map((u) => ({
                id: u.group_id,
                kind: u.kind === "code" ? ("code" as const) : ("order" as const),
              })),
            }))}
            draw={(gid) => {
              const g = x.groups.find((k) => k.id === gid)!;
              const tone = toneOf(g.status);
              return (
                <>
                  <b>{inert(g.title)}</b>
                  <span class={"status " + tone}>
                    <Mark tone={tone} />
                    {words(g.status)}
                  </span>{" "}
                  <span class="dim">
                    {g.tasks.length > 0 && `${merged(g)} of ${g.tasks.length} · `}
                    {g.repo}
                  </span>
                </>
              );
            }}
          />
          <p class="dim desk">
            <small>Solid: it needs the code. Dashed: only the order.</small>
          </p>
        </>
      )}
      {x.groups.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Groups">
          <table class="full narrows">
            <thead>
              <tr>
                <th>Group</th>
                <th>State</th>
                <th>Waits for</th>
                <th>Tasks</th>
                <td />
              </tr>
            </thead>
            <tbody>
              {x.groups.slice(0, rows).map((g) => (
                <tr key={g.id} id={"g-" + g.id} tabIndex={-1}>
                  <td>
                    <button
                      type="button"
                      class="plain"
                      title="Read what it is asked to do"
                      onClick={() => setRead(g.id)}
                    >
                      {inert(g.title)}
                    </button>
                    <br />
                    <small>
                      {g.repo} · {inert(g.slug)}
                    </small>
                  </td>
                  <td>
                    <Status of={g.status} />
                  </td>
                  <td data-name="Waits for" class={g.upstream.length ? undefined : "none"}>
                    {g.upstream.length === 0
                      ? "–"
                      : g.upstream.map((u) => (
                          <div key={u.group_id}>
                            <a href={"#g-" + u.group_id} onClick={() => open(u.group_id)}>
                              {inert(title.get(u.group_id) ?? u.group_id.slice(0, 8))}
                            </a>
                            {u.kind !== "code" && <small> order only</small>}
                          </div>
                        ))}
                  </td>
                  <td class={g.tasks.length ? undefined : "none"}>
                    {g.tasks.length === 0
                      ? "–"
                      : g.tasks.map((t) => (
                          <div key={t.id}>
                            <Status of={t.status} /> <a href={"/ui/tasks/" + t.id}>{inert(t.title)}</a>
                            {t.pr && (
                              <>
                                {" "}
                                ·{" "}
                                <a href={"/ui/prs/" + t.pr.id}>
                                  #{t.pr.number} {words(t.pr.state)}
                                </a>
                              </>
                            )}
                            {t.failure_kind && <small> {words(t.failure_kind)}</small>}
                          </div>
                        ))}
                  </td>
                  <td>
                    {g.upstream.some((u) => u.kind === "ordering_only") && !over(x) && (
                      <button type="button" {...gate(planUnlink, () => setDialog(g))}>
                        Unlink
                      </button>
                    )}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {x.groups.length > rows && (
        <p>
          <button type="button" onClick={() => setRows(x.groups.length)}>
            Show all {x.groups.length} groups
          </button>
        </p>
      )}
      {!over(x) && (
        <>
          <h2>Budget</h2>
          <Form
            call={planBudgetSet}
            submit="Set the cap"
            said="Set."
            keep
            read={(f) => ({ planId: id, usd: number(f, "usd") ?? null })}
          >
            {(wrong) => (
              <Text
                name="usd"
                label="Cap of the plan"
                hint="USD, for all its tasks; empty for none"
                wrong={wrong}
                value={x.budget_usd}
                decimal
              />
            )}
          </Form>
        </>
      )}
      {x.overview && (
        <>
          <h2>Overview</h2>
          <figure class="agent">
            <figcaption>
              {x.source === "file" || x.source === "execute"
                ? "From the documents of the plan"
                : "Written by a program"}
            </figcaption>
            <Markdown text={x.overview} />
          </figure>
        </>
      )}
      <Raw call={planGet} input={{ planId: id }} of={x} />
      {dialog === "regroup" ? (
        <Regroup of={x} close={() => setDialog("")} done={again} />
      ) : dialog ? (
        <Unlink of={x} group={dialog} close={() => setDialog("")} done={again} />
      ) : null}
      {reading && <GroupText of={reading} all={x.groups} go={(g) => setRead(g.id)} close={() => setRead("")} />}
    </>
  );
}

// Unlink removes edges that only keep an order, and shows what is left before it does.
function Unlink(p: { of: PlanDetail; group: PlanGroup; close: () => void; done: () => void }) {
  const g = p.group,
    [out, setOut] = useState<string[]>([]),
    name = (id: string) => inert(p.of.groups.find((x) => x.id === id)?.title ?? id.slice(0, 8));
  const left = g.upstream.filter((u) => !out.includes(u.group_id));
  return (
    <Dialog title={"Unlink " + inert(g.title)} class="wide" close={p.close}>
      <Form
        call={planUnlink}
        submit="Remove"
        done={(o) => {
          p.close();
          p.done();
          tell(
            `Removed. It waits for ${o.after.length}${o.revived.length ? `, and ${o.revived.length} tasks are queued again` : ""}.`,
          );
        }}
        read={(f) => ({
          planId: p.of.id,
          group_id: g.id,
          upstream_group_ids: out,
          reason: String(f.get("reason") ?? ""),
        })}
      >
        {(wrong) => (
          <>
            <fieldset>
              <legend>It shall not wait any more for</legend>
              {g.upstream.map((u) => (
                <label key={u.group_id} class="check">
                  <input
                    type="checkbox"
                    disabled={u.kind === "code"}
                    checked={out.includes(u.group_id)}
                    onChange={(e) =>
                      setOut(e.currentTarget.checked ? [...out, u.group_id] : out.filter((x) => x !== u.group_id))
                    }
                  />{" "}
                  {name(u.group_id)}
                  {u.kind === "code" && <small> it needs its code</small>}
                </label>
              ))}
              {wrong("upstream_group_ids") && <em>{wrong("upstream_group_ids")!.join(", ")}</em>}
            </fieldset>
            <p class="dim">
              Before: {g.upstream.map((u) => name(u.group_id)).join("; ")}. After:{" "}
              {left.map((u) => name(u.group_id)).join("; ") || "it waits for nothing"}.
            </p>
            <Text name="reason" label="Reason" hint="is kept with the change" wrong={wrong} />
          </>
        )}
      </Form>
    </Dialog>
  );
}

// Regroup puts other tasks, or those of an ask, in the place of groups.
function Regroup(p: { of: PlanDetail; close: () => void; done: () => void }) {
  const x = p.of,
    own = new Set(x.groups.flatMap((g) => g.tasks.map((t) => t.id))),
    [q, setQ] = useState(""),
    [chosen, setChosen] = useState<Task[]>([]); // they stay while others are looked for
  const tasks = useList("tasks" + q, (cursor, signal) =>
    taskList({ cursor, per_page: 30, q: q || undefined }, { signal }),
  );
  const asks = useList("asks", (cursor, signal) =>
    askList({ cursor, per_page: 30, filter: ["state:triaged"] }, { signal }),
  );
  const found = tasks.ids.value.map((t) => tasks.rows.get(t)!.value).filter((t) => !own.has(t.id)),
    is = (t: Task) => chosen.some((c) => c.id === t.id);
  return (
    <Dialog title="Put tasks in the place of groups" class="wide" close={p.close}>
      <Form
        call={planRegroup}
        submit="Regroup"
        done={(o) => {
          p.close();
          p.done();
          const n = o.superseded_groups.length;
          tell(`${n} ${n === 1 ? "group was" : "groups were"} replaced by ${o.groups.length}.`);
        }}
        read={(f) => ({
          planId: x.id,
          group_ids: f.getAll("group").map(String),
          ask_id: String(f.get("ask") ?? "") || undefined,
          task_ids: chosen.length ? chosen.map((t) => t.id) : undefined,
        })}
      >
        {(wrong) => (
          <>
            <fieldset>
              <legend>Groups that are replaced</legend>
              {x.groups
                .filter((g) => !["done", "stopped", "superseded"].includes(g.status))
                .map((g) => (
                  <label key={g.id} class="check">
                    <input type="checkbox" name="group" value={g.id} /> {inert(g.title)}{" "}
                    <small>{words(g.status)}</small>
                  </label>
                ))}
              {wrong("group_ids") && <em>{wrong("group_ids")!.join(", ")}</em>}
            </fieldset>
            <Choice
              name="ask"
              field="ask_id"
              label="By the tasks of an ask"
              wrong={wrong}
              all={[["", "none"], ...asks.ids.value.map((a) => [a, inert(asks.rows.get(a)!.value.title)] as const)]}
            />
            <fieldset>
              <legend>Or by these tasks</legend>
              <input
                type="search"
                aria-label="Find tasks"
                placeholder="Find tasks"
                onInput={(e) => setQ(e.currentTarget.value)}
              />
              {[...chosen.filter((t) => !found.some((f) => f.id === t.id)), ...found].map((t) => (
                <label key={t.id} class="check">
                  <input
                    type="checkbox"
                    checked={is(t)}
                    onChange={() => setChosen(is(t) ? chosen.filter((c) => c.id !== t.id) : [...chosen, t])}
                  />{" "}
                  {inert(t.title)}{" "}
                  <small>
                    {t.repo}, {words(t.status)}
                  </small>
                </label>
              ))}
              {wrong("task_ids") && <em>{wrong("task_ids")!.join(", ")}</em>}
            </fieldset>
          </>
        )}
      </Form>
    </Dialog>
  );
}
