// Lines and files of a repository, with the way to them at its code host.
import type { Repository } from "../client.gen";
import { inert } from "../ui/ansi";

// hrefOfFile is where people read a file as it was at a commit, and lines of it; undefined for the
// built-in host, which has no pages of files.
export function hrefOfFile(
  repo: Repository | undefined,
  commit: string | null,
  path: string,
  line = 0,
  last = line,
): string | undefined {
  if (!repo?.web_url || !commit) return undefined;
  const at = `${repo.web_url}/blob/${commit}/${path.split("/").map(encodeURIComponent).join("/")}`;
  return line ? `${at}?plain=1#L${line}${last > line ? "-L" + last : ""}` : at;
}

// Source names a file or lines of it, and leads there if it can be read.
export function Source(p: { name: string; href: string | undefined }) {
  const name = <code>{inert(p.name)}</code>;
  return p.href ? (
    <a href={p.href} target="_blank" rel="noreferrer noopener">
      {name}
    </a>
  ) : (
    name
  );
}
