// Lines and files of a repository, with the way to them at its code host.
import type { Repository } from "../client.gen";
import { inert } from "../ui/ansi";

// placeOfFile is our own page of a file as it was at a commit, and of lines of it.
export const placeOfFile = (full: string, commit: string, path: string, line = 0, last = line) =>
  `/ui/repos/${full}/file?${new URLSearchParams({ path, at: commit })}` +
  (line ? "#L" + line + (last > line ? "-L" + last : "") : "");

// hrefOfFile is where people read a file as it was at a commit, and lines of it: at its code host,
// and for the built-in one, which has no pages of files, here.
export function hrefOfFile(
  repo: Repository | undefined,
  commit: string | null,
  path: string,
  line = 0,
  last = line,
): string | undefined {
  if (!repo || !commit) return undefined;
  if (!repo.web_url) return placeOfFile(repo.full_name, commit, path, line, last);
  const at = `${repo.web_url}/blob/${commit}/${path.split("/").map(encodeURIComponent).join("/")}`;
  return line ? `${at}?plain=1#L${line}${last > line ? "-L" + last : ""}` : at;
}

// Source names a file or lines of it, and leads there if it can be read.
export function Source(p: { name: string; href: string | undefined }) {
  const name = <code>{inert(p.name)}</code>;
  if (p.href?.startsWith("/")) return <a href={p.href}>{name}</a>;
  return p.href ? (
    <a href={p.href} target="_blank" rel="noreferrer noopener">
      {name}
    </a>
  ) : (
    name
  );
}
