// The versions of a page of the knowledge base, and what two of them differ in.
import { Problem } from "../api";
import {
  kbPageDiff,
  kbPageRestore,
  kbPageVersions,
  type KnowledgePage,
  type KnowledgePageDiff,
  type KnowledgeVersion,
  type Repository,
} from "../client.gen";
import { Hunks } from "../cards/kb";
import { Actor } from "../cards/who";
import { useList, useOne } from "../list";
import { query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { Cards, Choice } from "../ui/inputs";
import { Act, Coming, Empty } from "../ui/parts";
import { Time } from "../ui/time";

type Row = KnowledgeVersion & { id: string };

// History is what the page was, what each version changed, and the way back to it.
export function History(p: { repo: Repository; of: KnowledgePage; again: () => void }) {
  const input = { repoId: p.repo.id, slug: p.of.slug },
    now = p.of.version,
    list = useList<Row>("versions", async (cursor, signal) => {
      const page = await kbPageVersions({ ...input, cursor, per_page: 100 }, { signal });
      return { ...page, data: page.data.map((v) => ({ ...v, id: String(v.version) })) };
    });
  const all = list.ids.value.map(Number),
    to = Number(query().get("to")) || now,
    from = Number(query().get("from")) || Math.max(...all.filter((v) => v < to), 0);
  const pick = (name: "from" | "to") => (v: string) =>
    setQuery({ from: String(from || ""), to: String(to), [name]: v });
  return (
    <>
      {all.length > 1 && (
        <div class="tools">
          <Choice
            name="from"
            label="Compare version"
            value={String(from)}
            wrong={() => undefined}
            all={all.map((v) => [String(v), String(v)] as const)}
            onPick={pick("from")}
          />
          <Choice
            name="to"
            label="with"
            value={String(to)}
            wrong={() => undefined}
            all={all.map((v) => [String(v), v === now ? v + " (now)" : String(v)] as const)}
            onPick={pick("to")}
          />
        </div>
      )}
      {list.state.value === "ready" && from > 0 && <Between key={from + " " + to} of={{ ...input, from, to }} />}
      <Cards
        list={list}
        label="Versions"
        empty="There is none."
        row={(v) => (
          <>
            <div>
              <p>
                <strong>Version {v.version}</strong> {v.version === now && <span class="dim">as it is</span>}
              </p>
              <p class="dim">
                {inert(v.title)} · {v.provenance.run_id ? "a run" : <Actor of={v.provenance.by} />} ·{" "}
                <Time at={v.updated_at} />
              </p>
            </div>
            <div class="acts">
              {all.some((x) => x < v.version) && (
                <button type="button" onClick={() => setQuery({ from: "", to: String(v.version) })}>
                  Show what version {v.version} changed
                </button>
              )}
              {v.version !== now && (
                <Act
                  call={kbPageRestore}
                  input={{ ...input, version: v.version, if_version: now }}
                  confirm={`Put version ${v.version} back? It becomes version ${now + 1}; version ${now} is kept.`}
                  failed={(e) => {
                    if (e instanceof Problem && e.slug === "page-changed") p.again();
                    return false;
                  }}
                  done={(o) => {
                    p.again();
                    return `Version ${v.version} is back, as version ${o.version}.`;
                  }}
                >
                  Put version {v.version} back
                </Act>
              )}
            </div>
          </>
        )}
      />
      <p class="dim">The page and the 19 versions before it are kept.</p>
    </>
  );
}

function Between(p: { of: { repoId: string; slug: string; from: number; to: number } }) {
  const one = useOne<KnowledgePageDiff>("diff", (signal) => kbPageDiff(p.of, { signal })),
    d = one.value.value;
  if (!d) return <Coming of={one} />;
  const label = `What differs between version ${d.from} and version ${d.to}`;
  return (
    <section class="sec" aria-label="Difference">
      <header>
        <h2>{label}</h2>
      </header>
      {d.hunks.length ? <Hunks of={d.hunks} label={label} /> : <Empty>The texts are the same.</Empty>}
    </section>
  );
}
