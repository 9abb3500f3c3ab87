// One plan: its groups as a drawing and as a table, and what a person may do with it.
import { useEffect, useState } from "preact/hooks";
import {
  planApprove,
  planBudgetSet,
  planCancel,
  planGet,
  planRegroup,
  planUnlink,
  type PlanDetail,
  type PlanGroup,
} from "../client.gen";
import { GroupTasks, GroupText } from "../cards/group";
import { useAgain, useOne } from "../list";
import type { PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Dag } from "../ui/dag";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { number, Text } from "../ui/inputs";
import { Markdown } from "../ui/markdown";
import { Act, Coming, Empty, Fact, Facts, Head, Id } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Mark, Status, toneOf, words } from "../ui/status";
import { Time } from "../ui/time";
import { Part } from "./plans";
import { merged, over, effect } from "../cards/planeffect";
import { Unlink, Regroup } from "../cards/planchange";

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
                    <GroupTasks of={g} />
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
            submit="Set the budget"
            said="Set."
            keep
            read={(f) => ({ planId: id, usd: number(f, "usd") ?? null })}
          >
            {(wrong) => (
              <Text
                name="usd"
                label="Budget of the plan"
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
