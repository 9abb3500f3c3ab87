// The caps of repositories: what each may cost in a month, and has cost.
import { projectBudgetSet, type RepoCap } from "../client.gen";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { number, of, Text } from "../ui/inputs";
import { usd } from "../ui/money";
import { Meter } from "../ui/parts";

export function RepoCaps(p: { all: RepoCap[]; changed: () => void }) {
  return (
    <>
      <h2>Budgets of repositories</h2>
      {p.all.length > 0 && (
        <ul class="cards" aria-label="Budgets of repositories">
          {p.all.map((r) => (
            <li key={r.repo_id} class="item">
              <p>
                <strong>{inert(r.repo)}</strong>
              </p>
              <div class="acts">
                <Meter
                  value={Number(r.spent_usd) + Number(r.reserved_usd)}
                  max={r.usd ?? 0}
                  label={`${usd(Number(r.spent_usd) + Number(r.reserved_usd))} of ${usd(r.usd ?? 0)}`}
                />
              </div>
            </li>
          ))}
        </ul>
      )}
      <Form
        call={projectBudgetSet}
        submit="Set the budget"
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
            <Text name="usd" label="Budget for a month" hint="USD; empty: none" wrong={wrong} decimal />
          </>
        )}
      </Form>
    </>
  );
}
