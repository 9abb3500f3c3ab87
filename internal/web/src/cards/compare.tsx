// Two attempts at a task side by side: what each cost and took, what it has changed, and what it
// said of it.
import { taskAttempts, type Run } from "../client.gen";
import { useAgain, useOne } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { Markdown } from "../ui/markdown";
import { count, many, usd } from "../ui/money";
import { Coming } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Took } from "../ui/time";
import { why } from "./attempts";

const nameOf = (r: Run) => `attempt ${r.attempt}`;

export function Compare(p: { id: string }) {
  const one = useOne(p.id + "compare", (signal) =>
      taskAttempts({ id: p.id, per_page: 200, compare: true }, { signal }),
    ),
    all = one.value.value?.data;
  useAgain("tasks", p.id, () => void one.load());
  if (!all) return <Coming of={one} />;
  if (all.length < 2) return null;
  const by = (name: string, other: Run) => all.find((r) => String(r.attempt) === query().get(name)) ?? other,
    a = by("a", all.at(-2)!),
    b = by("b", all.at(-1)!);
  const pick = (name: "a" | "b", r: Run) => (
    <select
      aria-label={name === "a" ? "First attempt" : "Second attempt"}
      value={String(r.attempt)}
      onChange={(e) => setQuery({ [name]: e.currentTarget.value })}
    >
      {all.map((r) => (
        <option key={r.id} value={String(r.attempt)}>
          {nameOf(r)}
        </option>
      ))}
    </select>
  );
  const rows: [string, (r: Run) => preact.ComponentChildren][] = [
    ["Outcome", (r) => <Status of={r.outcome ?? r.state} noun="run" />],
    ["Why", (r) => why(r) || "–"],
    ["Cost", (r) => usd(r.usage.cost_usd)],
    ["Took", (r) => <Took from={r.started_at} to={r.ended_at} />],
    ["Tokens", (r) => `${count(r.usage.input_tokens)} in, ${count(r.usage.output_tokens)} out`],
    ["Agent", (r) => inert([r.agent, r.model].filter(Boolean).join(" ")) || "–"],
    [
      "Changed",
      (r) =>
        r.changes ? (
          <>
            {many(r.changes.count, "file")} <span class="add">+{r.changes.additions}</span>{" "}
            <span class="del">−{r.changes.deletions}</span>
          </>
        ) : r.pushed_sha ? (
          "its commits are gone"
        ) : (
          "it pushed nothing"
        ),
    ],
  ];
  return (
    <section class="card compare" aria-label="Side by side">
      <header>
        <h2>Side by side</h2>
      </header>
      <div class="scroll" tabIndex={0} role="region" aria-label="Two attempts">
        <table>
          <thead>
            <tr>
              <td />
              <th scope="col">{pick("a", a)}</th>
              <th scope="col">{pick("b", b)}</th>
            </tr>
          </thead>
          <tbody>
            {rows.map(([name, cell]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{cell(a)}</td>
                <td>{cell(b)}</td>
              </tr>
            ))}
            <tr>
              <th scope="row">Files</th>
              <td>
                <Files of={a} other={b} />
              </td>
              <td>
                <Files of={b} other={a} />
              </td>
            </tr>
            <tr>
              <th scope="row">Report</th>
              <td>{a.report ? <Markdown text={a.report} /> : "none"}</td>
              <td>{b.report ? <Markdown text={b.report} /> : "none"}</td>
            </tr>
          </tbody>
        </table>
      </div>
    </section>
  );
}

// Files are those that an attempt has changed; those that the other one has not are marked.
function Files(p: { of: Run; other: Run }) {
  const all = p.of.changes?.files ?? [],
    other = new Set(p.other.changes?.files.map((f) => f.path));
  if (!all.length) return <>–</>;
  return (
    <ul>
      {all.map((f) => (
        <li key={f.path}>
          <code>{inert(f.path)}</code> <span class="add">+{f.additions}</span> <span class="del">−{f.deletions}</span>
          {f.kind !== "modified" && <span class="dim"> {words(f.kind)}</span>}
          {!other.has(f.path) && <span class="dim"> · only here</span>}
        </li>
      ))}
      {p.of.changes!.count > all.length && <li class="dim">and {p.of.changes!.count - all.length} more</li>}
    </ul>
  );
}
