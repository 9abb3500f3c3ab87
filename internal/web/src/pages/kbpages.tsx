// What is known of a repository: its pages, and a search in them.
import {
  kbPageList,
  kbPageUpsert,
  kbSearch,
  type KnowledgeHit,
  type KnowledgePageRow,
  type Repository,
} from "../client.gen";
import { Editor } from "../cards/kbedit";
import { Excerpt, placeOf, useRepository } from "../cards/kb";
import { Proposals } from "../cards/kbproposal";
import { Actor } from "../cards/who";
import { useList, useOne } from "../list";
import { go, query, setQuery, type PageProps } from "../route";
import { inert } from "../ui/ansi";
import { useFresh } from "../ui/every";
import { gate } from "../ui/gate";
import { Coming, Empty, Head, NoFit, Search, Tabs } from "../ui/parts";
import { Status } from "../ui/status";
import { Table } from "../ui/table";
import { Time } from "../ui/time";

const shows = ["all", "stale", "current", "proposals"];
type Row = KnowledgePageRow & { id: string };

export default function KnowledgeOf(p: PageProps) {
  const at = { owner: p.params.owner!, repo: p.params.repo! },
    full = at.owner + "/" + at.repo,
    one = useRepository(at),
    r = one.value.value;
  return r ? (
    <Pages key={r.id} repo={r} />
  ) : (
    <>
      <Head title={`Knowledge of ${full}`} />
      <Coming of={one} />
    </>
  );
}

function Pages(p: { repo: Repository }) {
  const full = p.repo.full_name,
    show = query().get("show") ?? "all",
    q = query().get("q") ?? "",
    writes = query().has("new");
  const list = useList<Row>(show, async (cursor, signal) => {
    const page = await kbPageList(
      {
        repoId: p.repo.id,
        cursor,
        per_page: 100,
        filter: show !== "stale" && show !== "current" ? undefined : ["stale:" + (show === "stale")],
      },
      { signal },
    );
    return { ...page, data: page.data.map((r) => ({ ...r, id: r.slug })) };
  });
  useFresh(30, list);
  if (writes)
    return (
      <>
        <Head title={`New page about ${full}`}>
          <span class="grow" />
          <a href={placeOf(full)}>All pages</a>
        </Head>
        <Editor repo={p.repo} slug={query().get("new") ?? ""} done={(slug) => go(placeOf(full, slug))} />
      </>
    );
  return (
    <section class="room">
      <Head title={`Knowledge of ${full}`} count={q ? undefined : list.count}>
        {!q && <Tabs label="Show" all={shows} at={show} to={(s) => setQuery({ show: s === "all" ? "" : s })} />}
        <Search label="Search in the pages" value={q} to={(t) => setQuery({ q: t })} />
        <span class="grow" />
        <a href={"/ui/repos/" + full}>The repository</a>
        <button type="button" class="main" {...gate(kbPageUpsert, () => go(placeOf(full) + "?new="))}>
          Write a page
        </button>
      </Head>
      {q ? (
        <Found repo={p.repo} q={q} />
      ) : show === "proposals" ? (
        <Proposals repo={p.repo} />
      ) : (
        <Table
          list={list}
          id="kbpages"
          label="Pages"
          widths="110px minmax(0,1fr) minmax(0,220px) minmax(0,150px) 80px 90px"
          href={(r) => placeOf(full, r.slug)}
          empty={
            show !== "all" ? (
              <NoFit noun="page" of={[show]} clear={placeOf(full)} />
            ) : (
              <>
                Nothing is known of it yet. Agents write pages as they work; <a href="?new=">write the first one</a>, or
                send a folder: <code>yardmaster kb push</code>
              </>
            )
          }
          columns={[
            {
              name: "State",
              class: "less",
              cell: (r) => (r.stale ? <Status of="stale" /> : <Status of="current" say="current" />),
            },
            { name: "Title", wide: true, cell: (r) => inert(r.title) },
            { name: "Name", class: "dim less", rank: 3, cell: (r) => <code>{r.slug}</code> },
            {
              name: "Written by",
              class: "dim less",
              rank: 2,
              cell: (r) => (r.provenance.run_id ? "an agent" : <Actor of={r.provenance.by} />),
            },
            { name: "Version", class: "num less", rank: 1, cell: (r) => r.version },
            { name: "Age", class: "dim end", cell: (r) => <Time at={r.updated_at} suffix={false} /> },
          ]}
        />
      )}
    </section>
  );
}

// Found are the pages that have the words, best first.
function Found(p: { repo: Repository; q: string }) {
  const one = useOne<{ data: KnowledgeHit[] }>(p.q, (signal) =>
      kbSearch({ repoId: p.repo.id, q: p.q, limit: 25 }, { signal }),
    ),
    hits = one.value.value?.data;
  if (!hits) return <Coming of={one} />;
  if (!hits.length)
    return (
      <Empty>
        No page has anything like “{inert(p.q)}”. <a href={placeOf(p.repo.full_name)}>Show all pages</a>
      </Empty>
    );
  return (
    <ol class="cards" aria-label="Pages found">
      {hits.map((h) => (
        <li key={h.slug} class="item">
          <div>
            <p>
              <strong>
                <a href={placeOf(p.repo.full_name, h.slug)}>{inert(h.title)}</a>
              </strong>{" "}
              {h.stale && <Status of="stale" />}
            </p>
            <Excerpt of={h.excerpt} />
            <p class="dim">
              <code>{h.slug}</code> · <Time at={h.updated_at} />
            </p>
          </div>
        </li>
      ))}
    </ol>
  );
}
