// The keys that decide about the card that has the focus.
import { ask } from "../ui/parts";
import { tell } from "../ui/toast";
import { shut } from "../ui/gate";
import { opened } from "./opened";

// decide presses a button of a question. Who may not is told the scope; who has not looked
// at the changes is asked once more.
export async function decide(button: HTMLButtonElement | null, pr: string, head: string) {
  if (!button || button.ariaBusy === "true") return;
  if (shut(button)) return tell(button.title || "Not possible now.");
  if (!opened(pr, head) && !(await ask("You have not opened what it changes. Decide all the same?"))) return;
  button.click();
}

const decideCard = (li: HTMLElement, pick: string) =>
  void decide(li.querySelector<HTMLButtonElement>(pick), li.dataset.pr ?? "", li.dataset.head ?? "");

// open follows the link, as a click does: so the list is remembered.
const open = (li: HTMLElement) => li.querySelector<HTMLAnchorElement>("strong a")?.click();

// keys are those of a list of cards. What is no question has one main button, or a form to
// fill in.
export const keys = {
  a: {
    does: "approve, or answer",
    run: (li: HTMLElement) => {
      if (li.dataset.pr) return decideCard(li, ".acts button.main");
      const field = li.querySelector<HTMLElement>("form input, form textarea");
      if (field) return field.focus();
      const button =
        li.querySelector<HTMLElement>(".acts button.main") ?? li.querySelector<HTMLElement>(".acts a.button");
      if (button && shut(button)) tell(button.title || "Not possible now.");
      else button?.click();
    },
  },
  s: {
    does: "skip",
    run: (li: HTMLElement) => {
      if (li.dataset.pr) decideCard(li, ".acts button:not(.main)");
      else tell("Only a question about a pull request can be skipped.");
    },
  },
  Enter: { does: "open", run: open },
};
