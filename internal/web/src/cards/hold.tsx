// A hold: why a task waits, what ends the wait, and the way there.
import { taskRetryNow, type TaskClear, type TaskHold } from "../client.gen";
import { Act } from "../ui/parts";
import { words } from "../ui/status";
import { Time } from "../ui/time";

// place is where a person does what ends a hold, and the words of the link.
function place(c: TaskClear): [does: string, href: string] | undefined {
  const a = c.args, id = encodeURIComponent(a["id"] ?? "");
  switch (c.capability) {
    case "task.budget_set": return ["Raise the cap", `/ui/tasks/${id}?tab=task`];
    case "task.redispatch": return ["Try again", `/ui/tasks/${id}?tab=task`];
    case "blocker.answer": case "blocker.submit": return ["Answer", "/ui/blockers/" + encodeURIComponent(a["blockerId"] ?? "")];
    case "project.update": return ["Enable the repository", `/ui/repos/${encodeURIComponent(a["owner"] ?? "")}/${encodeURIComponent(a["repo"] ?? "")}?tab=settings`];
    case "box.add": return ["Add a box", "/ui/boxes?add=1"];
    case "box.drain": return ["See the box", "/ui/boxes/" + id];
    case "billing.key_add": return ["Add a key", "/ui/settings/keys"];
    case "billing.price_set": return ["Set the price", "/ui/settings/keys"];
    case "billing.spend_cap_set": case "billing.member_cap_set": return ["Raise the cap", "/ui/usage"];
    case "plan.budget_set": return ["Raise the budget", "/ui/plans/" + encodeURIComponent(a["planId"] ?? "")];
    case "template.set": return ["See the templates", "/ui/templates"];
  }
  return id && c.capability.startsWith("pr.") ? ["See the pull request", "/ui/prs/" + id] : undefined;
}

export function Hold(p: { of: TaskHold }) {
  const h = p.of, c = h.clear, way = c && place(c);
  return <p class="hold"><strong>{words(h.reason)}</strong> <span class="dim">since <Time at={h.since} suffix={false} /></span> {h.clears_when}{" "}
    {c?.capability === "task.retry_now" ? <Act call={taskRetryNow} input={{ id: c.args["id"] ?? "" }} done="It goes on at once.">Retry now</Act>
      : way ? <a class="button" href={way[1]}>{way[0]}</a> : c && <small> · <code>{c.capability}</code></small>}</p>;
}
