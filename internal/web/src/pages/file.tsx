// A file of a repository as it was at a commit, with the lines that the address names marked.
import { useMemo } from "preact/hooks";
import { keep, Problem } from "../api";
import { projectFile, type Repository, type RepositoryFile } from "../client.gen";
import { useRepository } from "../cards/kb";
import { useOne } from "../list";
import { query, type PageProps } from "../route";
import { inert } from "../ui/ansi";
import { bytes } from "../ui/every";
import { Lines } from "../ui/lines";
import { Log } from "../ui/log";
import { Code, Coming, Empty, Fact, Facts, Head, Id } from "../ui/parts";

export default function FilePage(p: PageProps) {
  const at = { owner: p.params.owner!, repo: p.params.repo! },
    path = query().get("path") ?? "",
    commit = query().get("at") ?? "",
    one = useRepository(at),
    r = one.value.value;
  return (
    <>
      <Head title={inert(path) || "File"} />
      {!path || !commit ? (
        <Empty>The address names no file, or no commit at which to read it.</Empty>
      ) : r ? (
        <File key={[r.id, commit, path].join("\n")} repo={r} path={path} commit={commit} />
      ) : (
        <Coming of={one} />
      )}
    </>
  );
}

// why says what one can know of a file that cannot be shown.
const why = (e: unknown) =>
  e instanceof Problem && e.status === 404
    ? "There is no such file at this commit: the commit is not in the repository, or the path names a folder or nothing there."
    : e instanceof Problem && e.status === 413
      ? "The file is larger than 1 MiB, and is not shown here. Clone the repository to read it."
      : undefined;

function File(p: { repo: Repository; path: string; commit: string }) {
  const [owner, repo] = [p.repo.owner, p.repo.repo],
    one = useOne<RepositoryFile>("file", (signal) =>
      projectFile({ owner, repo, host: p.repo.host, path: p.path, commit: p.commit }, { signal }),
    ),
    f = one.value.value,
    text = f?.text,
    gone = why(one.error.value);
  return (
    <>
      <Facts>
        <Fact name="Repository">
          <a href={"/ui/repos/" + p.repo.full_name}>{p.repo.full_name}</a>
        </Fact>
        <Fact name="Commit">
          <Id of={p.commit} chars={10} />
        </Fact>
        {f && <Fact name="Size">{bytes(f.size)}</Fact>}
        <Fact name="Clone">
          <Code text={p.repo.clone_url} />
        </Fact>
      </Facts>
      {gone ? (
        <Empty>{gone}</Empty>
      ) : !f ? (
        <Coming of={one} />
      ) : typeof text !== "string" ? (
        <Empty>It is no text in UTF-8, so there are no lines to show. Clone the repository to have it.</Empty>
      ) : text === "" ? (
        <Empty>The file is empty.</Empty>
      ) : (
        <Words text={text} path={p.path} />
      )}
    </>
  );
}

// Words are the lines of a file. What a terminal would obey is a letter here, shown by its number.
function Words(p: { text: string; path: string }) {
  const lines = useMemo(() => {
    const all = new Lines();
    all.add("text", inert(p.text.replaceAll("\r\n", "\n")), true);
    return all;
  }, [p.text]);
  const name = inert(p.path.split("/").at(-1)!);
  return (
    <section class="boxed file" aria-label="Text">
      <Log lines={lines} id="file" label={inert(p.path)} file>
        <button type="button" onClick={() => keep(new Blob([p.text], { type: "text/plain" }), name)}>
          Download
        </button>
      </Log>
    </section>
  );
}
