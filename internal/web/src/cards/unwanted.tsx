// What a head changes that it should not, as a rule, and that it has no checks.
import type { PullRequest } from "../client.gen";
import { inert } from "../ui/ansi";

type Found = NonNullable<PullRequest["unwanted"]>;

const what: Record<Found["files"][number]["kind"], string> = {
  binary: "is binary",
  large: "is large",
  made_by_tool: "is made by a tool",
  conflict_marks: "has marks of an unfinished merge",
  lock_without_manifest: "changes without its manifest",
  submodule_unnamed: "is a submodule that .gitmodules does not name",
  lfs_replaced: "was a pointer of Git LFS",
  line_endings: "changes in the ends of its lines alone",
};

// Unwanted lists what to look at before the merge; nothing where there is nothing.
export function Unwanted(p: { of: PullRequest["unwanted"] }) {
  const u = p.of;
  if (!u || u.files.length === 0) return null;
  return (
    <p>
      <b>Look at</b>{" "}
      {u.files.map((f, i) => (
        <span key={f.path}>
          {i > 0 && "; "}
          <code>{inert(f.path)}</code> {what[f.kind]}
          {f.count > 1 && ` (${f.count} files)`}
        </span>
      ))}
      {u.more > 0 && `; and ${u.more} more`}.
    </p>
  );
}

// NoChecks says how a repository gets checks, where a head has none.
export function NoChecks(p: { of: PullRequest["checks"] }) {
  if (p.of !== "none") return null;
  return (
    <p class="dim">
      Nothing was run on it: <code>checks.command</code> of <code>.svc/policy.yml</code> names what to run.
    </p>
  );
}
