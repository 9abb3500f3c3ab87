// The forms that change a plan which waits: its edges and its groups.
import { useState } from "preact/hooks";
import { askList, planRegroup, planUnlink, taskList, type PlanDetail, type PlanGroup, type Task } from "../client.gen";
import { useList } from "../list";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { Choice, Text } from "../ui/inputs";
import { words } from "../ui/status";
import { tell } from "../ui/toast";

// Unlink removes edges that only keep an order, and shows what is left before it does.
export function Unlink(p: { of: PlanDetail; group: PlanGroup; close: () => void; done: () => void }) {
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
export function Regroup(p: { of: PlanDetail; close: () => void; done: () => void }) {
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
