// The documents of the program: a list, and what is in them by their headings.
import { useEffect, useState } from "preact/hooks";
import { address, parts, plain, type Part } from "../manual";
import { query, setQuery } from "../route";
import { pieces } from "../ui/markdown";
import { Empty, Head, Loading, Search, Trouble } from "../ui/parts";

export default function Manual() {
  const [all, set] = useState<Part[]>(), [error, setError] = useState<unknown>();
  const load = () => { setError(undefined); parts().then(set, setError); };
  useEffect(load, []);
  const q = query().get("q") ?? "", fits = (s: string) => plain(s).toLowerCase().includes(q.toLowerCase());
  const shown = (all ?? []).map((p) => ({ ...p, docs: p.docs.filter((d) => !q || fits(d.title) || fits(d.about) || d.headings.some((h) => fits(h.text))) })).filter((p) => p.docs.length);
  return <><Head title="Manual"><Search label="Search the headings" value={q} to={(text) => setQuery({ q: text })} /></Head>
    {error ? <Trouble error={error} again={load} /> : !all ? <Loading /> : <>
      {shown.map((p) => <section key={p.name}><h2>{p.name}</h2><ul class="cards">{p.docs.map((d) => <li key={d.name} class="card"><div>
        <a href={address(d.name)}><b>{d.title}</b></a><p class="dim">{pieces(d.about, 7)}</p>
        {q && <ul>{d.headings.filter((h) => fits(h.text)).map((h) => <li key={h.id}><a href={address(d.name, h.id)}>{plain(h.text)}</a></li>)}</ul>}</div></li>)}</ul></section>)}
      {!shown.length && <Empty>No heading has “{q}”.</Empty>}
      <p>What each capability takes and answers is <a href="/docs" target="_blank" rel="noopener">a page of its own</a>.</p></>}</>;
}
