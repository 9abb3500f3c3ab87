// The documents of the program: a list, and what stands in them.
import { useEffect, useState } from "preact/hooks";
import { address, parts, plain, search, type Hit, type Part } from "../manual";
import { query, setQuery } from "../route";
import { pieces } from "../ui/markdown";
import { Empty, Head, Loading, Search, Trouble } from "../ui/parts";

export default function Manual() {
  const [all, set] = useState<Part[]>(),
    [hits, setHits] = useState<Hit[]>([]),
    [error, setError] = useState<unknown>();
  const load = () => {
    setError(undefined);
    parts().then(set, setError);
  };
  useEffect(load, []);
  const q = query().get("q") ?? "",
    fits = (s: string) => plain(s).toLowerCase().includes(q.toLowerCase());
  useEffect(() => {
    let on = true;
    search(q.length > 1 ? q : "", 50).then(
      (found) => on && setHits(found),
      () => on && setHits([]),
    );
    return () => {
      on = false;
    };
  }, [q]);
  const shown = (all ?? [])
    .map((p) => ({
      ...p,
      docs: p.docs.filter((d) => !q || fits(d.title) || fits(d.about) || d.headings.some((h) => fits(h.text))),
    }))
    .filter((p) => p.docs.length);
  return (
    <>
      <Head title="Manual">
        <Search label="Search the manual" value={q} to={(text) => setQuery({ q: text })} />
      </Head>
      {error ? (
        <Trouble error={error} again={load} />
      ) : !all ? (
        <Loading />
      ) : (
        <>
          {shown.map((p) => (
            <section key={p.name}>
              <h2>{p.name}</h2>
              <ul class="cards">
                {p.docs.map((d) => (
                  <li key={d.name} class="item">
                    <div>
                      <a href={address(d.name)}>
                        <b>{d.title}</b>
                      </a>
                      <p class="dim">{pieces(d.about, 7)}</p>
                      {q && (
                        <ul>
                          {d.headings
                            .filter((h) => fits(h.text))
                            .map((h) => (
                              <li key={h.id}>
                                <a href={address(d.name, h.id)}>{plain(h.text)}</a>
                              </li>
                            ))}
                        </ul>
                      )}
                    </div>
                  </li>
                ))}
              </ul>
            </section>
          ))}
          {q && hits.length > 0 && (
            <section>
              <h2>In the text</h2>
              <ul class="cards" aria-label="Found in the text">
                {hits.map((h) => (
                  <li key={h.doc.name + (h.heading?.id ?? "")} class="item">
                    <div>
                      <a href={address(h.doc.name, h.heading?.id)}>
                        <b>{plain(h.heading?.text ?? h.doc.title)}</b>
                      </a>{" "}
                      <span class="dim">{h.doc.title}</span>
                      <p class="dim">{h.line}</p>
                    </div>
                  </li>
                ))}
              </ul>
            </section>
          )}
          {!shown.length && !hits.length && <Empty>Nothing in the manual has “{q}”.</Empty>}
          <p>
            What each capability takes and answers is{" "}
            <a href="/docs" target="_blank" rel="noopener">
              a page of its own
            </a>
            .
          </p>
        </>
      )}
    </>
  );
}
