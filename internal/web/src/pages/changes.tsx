// The changes of a pull request: its files, and their lines as they are opened.
import { useLayoutEffect, useMemo, useState } from "preact/hooks";
import { prDiff, type Finding, type PullDiff, type PullRequest, type PullRequestThread } from "../client.gen";
import { look } from "../cards/opened";
import { useOne } from "../list";
import { query, setQuery } from "../route";
import { Diff } from "../ui/diff";
import type { Note } from "../ui/patch";
import { Loading, Trouble } from "../ui/parts";
import { words } from "../ui/status";

export { opened } from "../cards/opened";

// Changes shows the diff of the head that the pull request had when it was opened. When
// the head moves, it stays, says so, and offers what changed since.
export function Changes(p: {
  pr: PullRequest;
  findings: Finding[];
  threads: PullRequestThread[];
  looked: (head: string) => void;
}) {
  const id = p.pr.id,
    since = query().get("since") ?? "",
    [head, setHead] = useState(p.pr.head_sha);
  const one = useOne<PullDiff>(id + head + since, (signal) =>
    prDiff({ id, since_sha: since || undefined }, { signal }),
  );
  const d = one.value.value;
  // As soon as it is drawn: a key that follows at once finds it opened.
  useLayoutEffect(() => {
    if (d) {
      look(id, d.head_sha);
      p.looked(d.head_sha);
    }
  }, [d?.head_sha]);
  const now: Note[] = p.findings
    .filter((f) => f.state === "posted" || f.state === "answered")
    .map((f) => ({
      path: f.file,
      line: f.line,
      side: f.side,
      text: `${f.severity} ${words(f.kind)}: ${f.claim}`,
      href: `?tab=review#f-${f.id}`,
    }));
  for (const t of p.threads)
    if (t.state === "open" && t.path && t.line && (t.head_sha ?? d?.head_sha) === d?.head_sha)
      now.push({
        path: t.path,
        line: t.line,
        side: t.side ?? "RIGHT",
        text: t.comments[0]?.body.split("\n", 1)[0] ?? "",
        href: `?tab=conversation#t-${t.id}`,
      });
  // The rows of all lines are made anew with other remarks, so they are others only if they
  // say something else.
  const notes = useMemo(() => now, [JSON.stringify(now)]);
  if (one.error.value) return <Trouble error={one.error.value} again={() => void one.load()} />;
  if (!d) return <Loading />;
  const moved = p.pr.state === "open" && p.pr.head_sha !== d.head_sha;
  return (
    <>
      {moved && (
        <p class="hold" role="alert">
          The branch has moved to <code>{p.pr.head_sha.slice(0, 10)}</code>. You are looking at{" "}
          <code>{d.head_sha.slice(0, 10)}</code>.{" "}
          <button
            type="button"
            onClick={() => {
              setQuery({ since: d.head_sha });
              setHead(p.pr.head_sha);
            }}
          >
            Show what changed since
          </button>{" "}
          <button
            type="button"
            onClick={() => {
              setQuery({ since: "" });
              setHead(p.pr.head_sha);
            }}
          >
            Show all of it
          </button>
        </p>
      )}
      <p class="dim">
        {d.files.length + d.more} {d.files.length + d.more === 1 ? "file" : "files"},{" "}
        <span class="pm">
          <span class="add">+{d.additions}</span> <span class="del">−{d.deletions}</span>
        </span>{" "}
        at <code>{d.head_sha.slice(0, 10)}</code>{" "}
        {since ? (
          <>
            since <code>{since.slice(0, 10)}</code>.{" "}
            <button type="button" onClick={() => setQuery({ since: "" })}>
              Show all of it
            </button>
          </>
        ) : (
          <>
            from <code>{d.from_sha.slice(0, 10)}</code>
          </>
        )}
      </p>
      {d.files.length === 0 ? (
        <p class="empty">No file changed.</p>
      ) : (
        <Diff
          key={d.head_sha + d.from_sha}
          files={d.files}
          more={d.more}
          notes={notes}
          keep={`${id}:${d.head_sha}:${since}`}
          load={async (path, signal) => {
            const got = await prDiff({ id, path, head_sha: d.head_sha, since_sha: since || undefined }, { signal });
            if (got.head_sha !== d.head_sha) throw new Error("The branch has moved.");
            return got.file;
          }}
        />
      )}
    </>
  );
}
