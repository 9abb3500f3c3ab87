// What agents made and their work does not have.
import type { PullRequest } from "../client.gen";
import { inert } from "../ui/ansi";

// LeftOut lists what was not handed in, and why; nothing where there is nothing.
export function LeftOut(p: { of: PullRequest["left_out"] }) {
  if (p.of.length === 0) return null;
  return (
    <>
      <p>
        <b>Made by the agent and left out</b>
      </p>
      <ul>
        {p.of.map((l) => (
          <li key={l.kind + l.name}>
            {l.kind === "branch" && "branch "}
            <code>{inert(l.name)}</code>: {inert(l.why)}
          </li>
        ))}
      </ul>
    </>
  );
}
