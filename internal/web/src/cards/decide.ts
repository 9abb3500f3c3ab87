// The keys that decide about the card that has the focus.
import { ask } from "../ui/parts";
import type { Press } from "../ui/press";
import { tell } from "../ui/toast";
import { cardOf } from "./item";
import { opened } from "./opened";

// press does what a button does. Of one that cannot be used it is said why.
function press(p: Press | undefined) {
  if (!p || p.busy) return;
  if (p.off !== undefined) return tell(p.off || "Not possible now.");
  return p.run();
}

// decide does one of two things about a question. Who may not is told the scope; who has not
// looked at the changes is asked once more.
export async function decide(question: string, which: "approve" | "skip", pr: string, head: string) {
  const now = () => cardOf(question)?.get(which)?.(),
    p = now();
  if (!p || p.busy || p.off !== undefined) return press(p);
  if (!opened(pr, head) && !(await ask("You have not opened what it changes. Decide all the same?"))) return;
  press(now());
}

const decideCard = (li: HTMLElement, which: "approve" | "skip") =>
  void decide(li.dataset.id!, which, li.dataset.pr!, li.dataset.head ?? "");

// open follows the link, as a click does: so the list is remembered.
const open = (li: HTMLElement) => li.querySelector<HTMLAnchorElement>("strong a")?.click();

// keys are those of a list of cards. What is no question has one main button, or a form to
// fill in.
export const keys = {
  a: {
    does: "approve, or answer",
    run: (li: HTMLElement) => {
      if (li.dataset.pr) return decideCard(li, "approve");
      const card = cardOf(li.dataset.id!);
      press((card?.get("answer") ?? card?.get("main"))?.());
    },
  },
  s: {
    does: "skip",
    run: (li: HTMLElement) => {
      if (li.dataset.pr) decideCard(li, "skip");
      else tell("Only a question about a pull request can be skipped.");
    },
  },
  Enter: { does: "open", run: open },
};
