// A hold: why a task waits, what ends the wait, and the way there.
import type { ComponentChildren } from "preact";
import {
  billingKeyAdd,
  billingPriceSet,
  billingKeyBudgetSet,
  billingSpendCapSet,
  boxAdd,
  prGet,
  projectBudgetSet,
  taskRetryNow,
  type TaskClear,
  type TaskHold,
} from "../client.gen";
import { Named, NamedTask } from "./named";
import { may } from "../session";
import { inert } from "../ui/ansi";
import { Act } from "../ui/parts";
import { waits } from "../ui/say";
import { Time } from "../ui/time";

// place is where a person does what ends a hold, the words of the link, and the call that is
// made there where not everybody may make it.
function place(c: TaskClear): [does: string, href: string, call?: { scope: string }] | undefined {
  const a = c.args,
    id = encodeURIComponent(a["id"] ?? "");
  switch (c.capability) {
    case "task.budget_set":
      return ["Raise the budget", `/ui/tasks/${id}?do=budget`];
    case "task.redispatch":
      return ["Try again", `/ui/tasks/${id}?do=redispatch`];
    case "blocker.answer":
    case "blocker.submit":
      return ["Answer", "/ui/blockers/" + encodeURIComponent(a["blockerId"] ?? "")];
    case "project.update":
      return [
        "Enable the repository",
        `/ui/repos/${encodeURIComponent(a["owner"] ?? "")}/${encodeURIComponent(a["repo"] ?? "")}?tab=settings`,
      ];
    case "box.add":
      return ["Add a box", "/ui/boxes?add=1", boxAdd];
    case "box.drain":
      return ["See the box", "/ui/boxes/" + id];
    case "billing.key_add":
      return ["Add a key", "/ui/settings/keys?add=1", billingKeyAdd];
    case "billing.price_set":
      return ["Set the price", "/ui/settings/keys", billingPriceSet];
    case "billing.spend_cap_set":
    case "billing.member_cap_set":
      return ["Raise the budget", "/ui/usage", billingSpendCapSet];
    case "project.budget_set":
      return ["Raise the repository's budget", "/ui/usage", projectBudgetSet];
    case "billing.key_budget_set":
      return ["Raise the key's budget", "/ui/settings/keys", billingKeyBudgetSet];
    case "plan.budget_set":
      return ["Raise the budget", "/ui/plans/" + encodeURIComponent(a["planId"] ?? "")];
    case "task.cancel":
      return ["See the task", "/ui/tasks/" + id];
    case "template.set":
      return ["See the templates", "/ui/templates"];
  }
  return id && c.capability.startsWith("pr.") ? ["See the pull request", "/ui/prs/" + id] : undefined;
}

// What is an object, a time or a word of a program in a sentence of the server.
const part =
  /(?:\bthe (?=blocker ))?\b(task|pull request|blocker) ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})|(?:\bat )?(\d{4}-\d\d-\d\dT[\d:.]+Z)|`([^`]+)`/g;

function Thing(p: { noun: string; id: string }) {
  const id = p.id;
  if (p.noun === "task") return <NamedTask id={id} />;
  if (p.noun === "pull request")
    return <Named id={id} href={"/ui/prs/" + id} get={prGet} read={() => prGet({ id })} name={(r) => r.title} />;
  return <a href={"/ui/blockers/" + id}>its question</a>;
}

// Until draws what ends a wait: the objects that the sentence names as links with their
// titles, times as times, and not the call in brackets, which the button beside it makes.
export function Until(p: { text: string; clear: TaskClear | null }) {
  const cut = p.clear ? p.text.indexOf(` (${p.clear.capability} of the `) : -1,
    text = cut < 0 ? p.text : p.text.slice(0, cut),
    out: ComponentChildren[] = [];
  let at = 0;
  for (const m of text.matchAll(part)) {
    out.push(inert(text.slice(at, m.index)));
    const [all, noun, id, time, code] = m;
    if (noun && id) out.push(noun === "blocker" ? "" : noun + " ", <Thing noun={noun} id={id} />);
    else if (time) out.push(<Time at={time} />);
    else out.push(<code>{inert(code!)}</code>);
    at = m.index + all.length;
  }
  return (
    <>
      until {out}
      {inert(text.slice(at))}
    </>
  );
}

// Clears is the way to what ends a wait.
export function Clears(p: { of: TaskClear | null }) {
  const c = p.of,
    way = c && place(c);
  if (c?.capability === "task.retry_now")
    return (
      <Act call={taskRetryNow} input={{ id: c.args["id"] ?? "" }} done="It goes on at once.">
        Retry now
      </Act>
    );
  if (way?.[2] && !may(way[2]))
    return (
      <span class="dim">
        {way[0]}: needs the scope {way[2].scope}
      </span>
    );
  return way ? (
    <a class={c.capability.startsWith("blocker.") ? "button main" : "button"} href={way[1]}>
      {way[0]}
    </a>
  ) : null;
}

// Hold says why a task waits; a bare one leaves the way on to a button beside it.
export function Hold(p: { of: TaskHold; bare?: boolean }) {
  const h = p.of;
  return (
    <p class="hold">
      <strong>{waits(h.reason)}</strong>
      <span class="dim">
        , since <Time at={h.since} suffix={false} />,
      </span>{" "}
      <Until text={h.clears_when} clear={h.clear} /> {!p.bare && <Clears of={h.clear} />}
    </p>
  );
}
