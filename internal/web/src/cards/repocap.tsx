// The caps of repositories and of keys: what each may cost in a month, and has cost.
import { projectBudgetSet, type KeyCap, type RepoCap } from "../client.gen";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { number, of, Text } from "../ui/inputs";
import { usd } from "../ui/money";
import { Meter } from "../ui/parts";
import { Budget } from "./cap";

function Caps(p: { name: string; all: { id: string; name: string; of: KeyCap | RepoCap }[] }) {
  return (
    <ul class="cards" aria-label={p.name}>
      {p.all.map((r) => {
        const used = Number(r.of.spent_usd) + Number(r.of.reserved_usd);
        return (
          <li key={r.id} class="item">
            <p>
              <strong>{inert(r.name)}</strong>
            </p>
            <div class="acts">
              <Meter value={used} max={r.of.usd ?? 0} label={`${usd(used)} of ${usd(r.of.usd ?? 0)}`} />
            </div>
          </li>
        );
      })}
    </ul>
  );
}

// KeyCaps are set where the keys are.
export function KeyCaps(p: { all: KeyCap[] }) {
  if (!p.all.length) return null;
  return (
    <>
      <h2>Budgets of keys</h2>
      <Caps name="Budgets of keys" all={p.all.map((k) => ({ id: k.key_id, name: k.label, of: k }))} />
      <p class="dim">
        <a href="/ui/settings/keys">The page of the keys</a> sets them.
      </p>
    </>
  );
}

export function RepoCaps(p: { all: RepoCap[]; changed: () => void }) {
  return (
    <>
      <h2>Budgets of repositories</h2>
      {p.all.length > 0 && (
        <Caps name="Budgets of repositories" all={p.all.map((r) => ({ id: r.repo_id, name: r.repo, of: r }))} />
      )}
      <Form
        call={projectBudgetSet}
        submit="Set the repository's budget"
        said="It holds from the next call on."
        done={p.changed}
        read={(f) => {
          const [owner = "", repo = ""] = (of(f, "repo") ?? "").split("/");
          return { owner, repo, usd: number(f, "usd") ?? null };
        }}
      >
        {(wrong) => (
          <>
            <Text name="repo" label="Repository" hint="OWNER/NAME" need wrong={wrong} />
            <Budget of="the repository" wrong={wrong} />
          </>
        )}
      </Form>
    </>
  );
}
