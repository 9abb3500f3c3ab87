// A task among the cards of Home.
import type { Task } from "../client.gen";
import { inert } from "../ui/ansi";
import { words } from "../ui/status";

export function TaskCard(p: { of: Task; children?: preact.ComponentChildren }) {
  const t = p.of,
    failed = t.status !== "running" || t.stuck; // what an earlier try failed of is over once another runs
  return (
    <li class="item tall">
      <div>
        <p>
          <strong>
            <a href={"/ui/tasks/" + t.id}>{inert(t.title)}</a>
          </strong>
        </p>
        <p class="dim">
          {t.repo} · attempt {t.attempt}
          {failed && t.failure_kind && <> · {words(t.failure_kind)}</>}
          {t.stuck && <b class="bad"> · stuck</b>}
        </p>
        {failed && t.failure && <p>{inert(t.failure)}</p>}
      </div>
      {p.children}
    </li>
  );
}
