// Deeds are what can be done with a task in its state: none that the server would refuse.
import { taskBudgetSet, taskCancel, taskReassign, taskRedispatch, type TaskDetail } from "../client.gen";
import { can, cancelled, cancels } from "./can";
import { query, setQuery } from "../route";
import { Dialog } from "../ui/dialog";
import { Form } from "../ui/form";
import { gate } from "../ui/gate";
import { number, Text } from "../ui/inputs";
import { Act } from "../ui/parts";

// Deeds are buttons; those that ask for something open a dialog, which the address names.
export function Deeds(p: { of: TaskDetail }) {
  const t = p.of,
    may_ = can(t),
    open = query().get("do"),
    close = () => setQuery({ do: "" }),
    asks = t.holds.some((h) => h.clear?.capability.startsWith("blocker.")); // an answer is the way on
  const ask = (what: "redispatch" | "budget", name: string, call: { scope: string }) => (
    <button
      type="button"
      class={what === "redispatch" && !asks ? "main" : undefined}
      {...gate(call, () => setQuery({ do: what }))}
    >
      {name}
    </button>
  );
  return (
    <>
      {may_.redispatch && ask("redispatch", "Redispatch", taskRedispatch)}
      {may_.reassign && (
        <Act
          call={taskReassign}
          input={{ id: t.id }}
          confirm="Take the task from its box and queue it again?"
          done={(o) => (o.reassigned ? "Queued again." : "No box had it any more.")}
        >
          Reassign
        </Act>
      )}
      {may_.budget && ask("budget", "Change budget", taskBudgetSet)}
      {may_.cancel && (
        <Act
          call={taskCancel}
          input={{ id: t.id }}
          confirm={cancels(t.pr_id)}
          yes="Cancel the task"
          done={cancelled}
          class="danger"
        >
          Cancel
        </Act>
      )}
      {open === "redispatch" && may_.redispatch && (
        <Dialog title="Redispatch" close={close}>
          <p class="dim">The task goes back into the queue with new attempts, and goes on from the work it saved.</p>
          <Form
            call={taskRedispatch}
            submit="Queue it again"
            said="Queued again."
            read={(f) => ({ id: t.id, guidance: String(f.get("guidance") ?? "") || undefined })}
            done={close}
          >
            {(wrong) => (
              <Text
                name="guidance"
                label="Guidance"
                hint="what the next attempt should know"
                wrong={wrong}
                rows={3}
                focus
              />
            )}
          </Form>
        </Dialog>
      )}
      {open === "budget" && may_.budget && (
        <Dialog title="Budget" close={close}>
          <Form
            call={taskBudgetSet}
            submit="Set the budget"
            said="Set."
            keep
            read={(f) => ({ id: t.id, usd: number(f, "usd") ?? null })}
            done={close}
          >
            {(wrong) => (
              <Text
                name="usd"
                label="Budget"
                hint="USD; empty for none"
                wrong={wrong}
                value={t.budget.usd}
                decimal
                focus
              />
            )}
          </Form>
        </Dialog>
      )}
    </>
  );
}
