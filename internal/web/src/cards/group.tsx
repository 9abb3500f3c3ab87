// What one group of a plan is asked to do: what whoever approves the plan reads.
import { planGroupGet, type PlanGroup } from "../client.gen";
import { useOne } from "../list";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { Markdown } from "../ui/markdown";
import { Coming } from "../ui/parts";
import { Status, words } from "../ui/status";

// GroupText reads the groups of a plan one after the other. go shows another one of them.
export function GroupText(p: { of: PlanGroup; all: PlanGroup[]; go: (g: PlanGroup) => void; close: () => void }) {
  const g = p.of,
    at = p.all.indexOf(g),
    one = useOne(g.id, (signal) => planGroupGet({ planId: g.plan_id, groupId: g.id }, { signal })),
    x = one.value.value;
  const step = (to: PlanGroup | undefined, word: string) => (
    <button type="button" aria-disabled={!to || undefined} onClick={() => to && p.go(to)}>
      {word}
    </button>
  );
  return (
    <Dialog title={inert(g.title)} class="wide" close={p.close}>
      <p>
        <Status of={g.status} />{" "}
        <span class="dim">
          {g.repo} · {inert(g.slug)} · {at + 1} of {p.all.length}
        </span>
      </p>
      {x ? (
        <figure class="agent">
          <figcaption>What its task is asked to do</figcaption>
          {x.problem ? <Markdown text={x.problem} /> : <p class="empty">It has no text.</p>}
        </figure>
      ) : (
        <Coming of={one} />
      )}
      {g.files.length > 0 && (
        <p class="dim">
          Expected to touch: <code>{g.files.map((f) => inert(f)).join(", ")}</code>
        </p>
      )}
      <footer>
        {step(p.all[at - 1], "Previous")} {step(p.all[at + 1], "Next")}
      </footer>
    </Dialog>
  );
}

// GroupTasks are the tasks of a group, each with its pull request.
export function GroupTasks(p: { of: PlanGroup }) {
  const g = p.of;
  return (
    <>
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
    </>
  );
}
