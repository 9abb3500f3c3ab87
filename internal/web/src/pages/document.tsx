// One document of the program. The address names the heading that is shown.
import { useEffect, useMemo, useState } from "preact/hooks";
import { address, docs, plain, textOf, type Doc } from "../manual";
import { here, type PageProps } from "../route";
import { anchors, Markdown } from "../ui/markdown";
import { Empty, Head, Loading, Trouble } from "../ui/parts";

type Read = { all: Doc[]; doc: Doc | undefined; text: string };

async function read(name: string): Promise<Read> {
  const all = await docs(),
    doc = all.find((d) => d.name === name);
  return { all, doc, text: doc ? (await textOf(doc)).replace(/^# .*\n/, "") : "" };
}

export default function Document(p: PageProps) {
  const name = p.params["name"]!;
  const [got, set] = useState<Read>(),
    [error, setError] = useState<unknown>();
  const load = () => {
    setError(undefined);
    read(name).then(set, setError);
  };
  useEffect(load, [name]);
  const hash = here.value.hash;
  useEffect(() => {
    // the focus goes to the heading that the address names
    const at = got?.doc && hash ? document.getElementById(decodeURIComponent(hash.slice(1))) : null;
    at?.scrollIntoView();
    at?.focus({ preventScroll: true });
  }, [got, here.value]);
  const body = useMemo(() => got?.doc && <Text {...got} doc={got.doc} />, [got]);
  return (
    <>
      <Head title={got?.doc?.title ?? "Manual"}>
        <span class="grow" />
        <a href="/ui/docs">All documents</a>
      </Head>
      {error ? (
        <Trouble error={error} again={load} />
      ) : !got ? (
        <Loading />
      ) : !got.doc ? (
        <Empty>
          There is no document of this name. <a href="/ui/docs">See which there are</a>.
        </Empty>
      ) : (
        body
      )}
    </>
  );
}

function Text({ all, doc, text }: Read & { doc: Doc }) {
  // A link to a document or a heading stays in the dashboard. Other files are only in the
  // repository: their names are text.
  const resolve = (to: string) => {
    const [file = "", id = ""] = to.split("#"),
      name = file ? /^([\w-]+)\.md$/.exec(file)?.[1] : doc.name;
    return all.some((d) => d.name === name) ? address(name!, id) : undefined;
  };
  const own = doc.headings.filter((h) => h.level === 2);
  return (
    <>
      {own.length > 2 && (
        <details class="toc">
          <summary>On this page</summary>
          <ul>
            {own.map((h) => (
              <li key={h.id}>
                <a href={address(doc.name, h.id)}>{plain(h.text)}</a>
              </li>
            ))}
          </ul>
        </details>
      )}
      <Markdown text={text} how={{ resolve, anchors: anchors() }} />
    </>
  );
}
