// The first steps of an account in which nothing was ever done.
import type { NextStep, NextSteps } from "../client.gen";
import { filing } from "../pages/newtask";
import { Code } from "../ui/parts";
import { Status } from "../ui/status";
import { table } from "../own";

// ways are where a step is taken: the dialog that does it, or the page where it is done.
const ways: Record<string, string> = table({
  "project.create": "/ui/repos?add=1",
  "project.update": "/ui/repos",
  "project.policy_validate": "/ui/repos",
  "billing.key_add": "/ui/settings/keys?add=1",
  "box.add": "/ui/boxes?add=1",
  "box.drain": "/ui/boxes",
  "template.set": "/ui/templates",
  "account.set_seats": "/ui/settings/account",
  "token.mint": "/ui/settings",
});

// shown are the steps to show: what is so in nearly every account is one only where it is
// not so, and what one may not see is nobody's step.
const shown = (r: NextStep) =>
  r.state === "open" || (r.state === "done" && r.rung !== "may_dispatch" && r.rung !== "capacity");

const verb = (title: string) => title.split(" ")[0];

export function First(p: { of: NextSteps }) {
  const last = "File your first task",
    ready = p.of.rungs.every((r) => r.state !== "open");
  return (
    <section aria-labelledby="steps">
      <h2 id="steps">First steps</h2>
      <ol class="cards">
        {p.of.rungs.filter(shown).map((r) => (
          <li key={r.rung} class="item" data-state={r.state}>
            <div>
              <p>
                <Status of={r.state === "open" ? "waiting" : "done"} say={r.state === "open" ? "to do" : "done"} />{" "}
                <strong>{r.title}</strong>
              </p>
              {r.state === "open" && <Code text={r.command} />}
            </div>
            {r.state === "open" && (
              <a class="button" href={ways[r.cleared_by] ?? "/ui/settings"} aria-label={r.title}>
                {verb(r.title)}
              </a>
            )}
          </li>
        ))}
        <li class="item">
          <div>
            <p>
              <Status of="waiting" say="to do" /> <strong>{last}</strong>
            </p>
            <Code text="yardmaster task create --repo OWNER/NAME 'What is to be done'" />
          </div>
          <button type="button" class={ready ? "main" : undefined} aria-label={last} {...filing()}>
            {verb(last)}
          </button>
        </li>
      </ol>
    </section>
  );
}
