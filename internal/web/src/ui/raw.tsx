// Raw is an object as the API has it, and the command that asks for it.
import type { Call } from "../api";
import { inert } from "./ansi";
import { Code } from "./parts";

export function Raw<In extends object, Out>(p: { call: Call<In, Out>; input: In; of: Out; open?: boolean }) {
  const args = Object.entries(p.input)
    .map(([k, v]) => ` ${k}=${v}`)
    .join("");
  return (
    <details class="rawdata" open={p.open}>
      <summary>As data</summary>
      <p>
        <Code text={`yardmaster call ${p.call.id}${args}`} />
      </p>
      <pre class="raw" tabIndex={0}>
        {inert(JSON.stringify(p.of, null, 2))}
      </pre>
    </details>
  );
}
