// What narrows the list of tasks: of which kind, who asked, when, in which repository. All of
// it is in the address.
import { query, setQuery } from "../route";
import { useRepos } from "../whole";
import { inert } from "../ui/ansi";
import { table } from "../own";

const kinds: Record<string, string> = table({
  work: "kind:work,scout,setup,kb,devops",
  all: "",
  review: "kind:review",
  repair: "kind:babysit",
  check: "kind:ci",
});
const days: Record<string, [from: number, to?: number]> = table({ today: [0], yesterday: [1, 0], week: [6] });

const dayOf = (back: number) => new Date(Date.now() - back * 86_400_000).toISOString().slice(0, 10);

// kindOf is the kind that is shown: pieces of work with what belongs to them inside, unless
// something is looked for among all there is.
const kindOf = (show: string) =>
  query().get("kind") ||
  (["all", "open"].includes(show) && !query().has("filter") && !query().get("q") ? "work" : "all");

// narrowed are the filters that the fields of Narrow stand for.
export function narrowed(show: string): string[] {
  const day = days[query().get("day") ?? ""],
    repo = query().get("repo"),
    kind = kinds[kindOf(show)];
  return [
    ...(kind ? [kind] : []),
    ...(query().get("by") === "me" ? ["person:me"] : []),
    ...(repo ? ["repo:" + repo] : []),
    ...(day ? ["since:" + dayOf(day[0])] : []),
    ...(day?.[1] !== undefined ? ["before:" + dayOf(day[1])] : []),
  ];
}

// chosen says in words what was chosen.
export const chosen = (): string[] =>
  [
    query().get("kind") && query().get("kind") !== "all" ? "of this kind" : "",
    query().get("by") === "me" ? "asked for by you" : "",
    query().get("repo") ? "in " + inert(query().get("repo")!) : "",
    query().get("day") ? "filed " + (query().get("day") === "week" ? "in the last 7 days" : query().get("day")) : "",
  ].filter(Boolean);

export function Narrow(p: { show: string }) {
  const repos = useRepos().value.value?.data ?? [];
  return (
    <div class="tools narrows" role="group" aria-label="Narrow the list">
      <Pick
        label="Kind"
        name="kind"
        at={kindOf(p.show)}
        all={[
          ["work", "Work"],
          ["review", "Reviews"],
          ["repair", "Repairs"],
          ["check", "Checks"],
          ["all", "Work and its steps"],
        ]}
      />
      <Pick
        label="Asked by"
        name="by"
        at={query().get("by") ?? ""}
        all={[
          ["", "Asked by anyone"],
          ["me", "Asked by you"],
        ]}
      />
      <Pick
        label="Filed"
        name="day"
        at={query().get("day") ?? ""}
        all={[
          ["", "Filed any day"],
          ["today", "Filed today"],
          ["yesterday", "Filed yesterday"],
          ["week", "Filed in 7 days"],
        ]}
      />
      {repos.length > 1 && (
        <Pick
          label="Repository"
          name="repo"
          at={query().get("repo") ?? ""}
          all={[["", "Every repository"], ...repos.map((r) => [r.full_name, inert(r.full_name)] as const)]}
        />
      )}
    </div>
  );
}

function Pick(p: { label: string; name: string; at: string; all: readonly (readonly [string, string])[] }) {
  return (
    <select aria-label={p.label} value={p.at} onChange={(e) => setQuery({ [p.name]: e.currentTarget.value })}>
      {p.all.map(([value, says]) => (
        <option key={value} value={value}>
          {says}
        </option>
      ))}
    </select>
  );
}
