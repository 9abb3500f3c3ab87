// What the pages about the knowledge of a repository have in common.
import {
  projectGet,
  type KnowledgeExcerpt,
  type KnowledgePageHunk,
  type KnowledgeStale,
  type Repository,
} from "../client.gen";
import { hrefOfFile, Source } from "./source";
import { useOne } from "../list";
import { inert } from "../ui/ansi";
import { anchors, Markdown, type How } from "../ui/markdown";
import { Id } from "../ui/parts";
import { Status } from "../ui/status";
import { Time } from "../ui/time";

export type At = { owner: string; repo: string };

// useRepository reads a repository, by whose id its knowledge is asked for.
export const useRepository = (at: At) =>
  useOne<Repository>(at.owner + "/" + at.repo, (signal) => projectGet(at, { signal }));

// placeOf is the address of a page, and of the list of pages without a slug.
export const placeOf = (full: string, slug = "") =>
  `/ui/kb/${full}` + (slug && "/" + slug.split("/").map(encodeURIComponent).join("/"));

const longest = 200; // characters of a slug

// meant are the slugs that a link in the text of a page may mean, the likeliest first. The
// server reads them in the same way.
export function meant(slug: string, to: string): string[] {
  let at = to.replace(/[#?].*$/s, "");
  try {
    at = decodeURIComponent(at);
  } catch {
    /* a per cent sign as it is */
  }
  at = at.replace(/:[\d-]*$/, "");
  if (!at || at.startsWith("//") || at.includes(":")) return [];
  const from = at.startsWith("/") ? [at] : [slug.replace(/[^/]*$/, "") + at, at],
    out = new Set<string>();
  for (const path of from) {
    const parts: string[] = [];
    for (const part of path.split("/"))
      if (part === "..") parts.pop();
      else if (part && part !== ".") parts.push(part);
    const whole = parts.join("/");
    for (const s of [whole, whole.replace(/\.md$/, "")]) if (s && s.length <= longest) out.add(s);
  }
  return [...out];
}

// Files are those that a page names as what it is from, and where one of them is read.
export type Files = { all: string[]; href: (path: string, line?: number, last?: number) => string | undefined };

// how draws links to other pages. there are the pages that the text leads to; without
// them, each link is taken at its word. What leads to no page may lead to one of the files.
function how(full: string, slug: string, there?: string[], files?: Files): How {
  const ids = anchors();
  return {
    wiki: true,
    anchors: (heading) => "h-" + ids(heading), // no name of a part of the page is taken
    resolve: (to) => {
      if (/^(https?|mailto):/i.test(to)) return undefined;
      if (to.startsWith("#")) return "#h-" + to.slice(1);
      const all = meant(slug, to),
        hit = there ? all.find((s) => there.includes(s)) : all[0];
      if (hit !== undefined) return placeOf(full, hit);
      const file = all.find((s) => files?.all.includes(s));
      if (file === undefined) return undefined;
      const lines = /(?:#L|:)(\d+)(?:-L?(\d+))?$/.exec(to);
      return files!.href(file, Number(lines?.[1] ?? 0), Number(lines?.[2] ?? lines?.[1] ?? 0));
    },
  };
}

// Text is the text of a page, without its first heading where that is its title.
export function Text(p: { full: string; slug: string; title: string; body: string; there?: string[]; files?: Files }) {
  const first = /^#\s+(.*)\r?(?:\n|$)/.exec(p.body);
  return (
    <Markdown
      text={first && first[1]!.trim() === p.title ? p.body.slice(first[0].length) : p.body}
      how={how(p.full, p.slug, p.there, p.files)}
    />
  );
}

// Outdated says why a page may be wrong by now.
export function Outdated(p: { repo: Repository; of: KnowledgeStale }) {
  const s = p.of;
  return (
    <div class="hold">
      <p>
        <Status of="stale" /> What it was written from has changed on the default branch, found <Time at={s.since} /> at{" "}
        <Id of={s.commit} />:
      </p>
      <ul>
        {s.files.map((f) => (
          <li key={f}>
            <Source name={f} href={hrefOfFile(p.repo, s.commit, f)} />
          </li>
        ))}
      </ul>
    </div>
  );
}

// Excerpt is a part of a text; its marks are counted in bytes.
export function Excerpt(p: { of: KnowledgeExcerpt }) {
  const bytes = new TextEncoder().encode(p.of.text),
    text = (from: number, to?: number) => inert(new TextDecoder().decode(bytes.subarray(from, to)));
  let at = 0;
  return (
    <p class="excerpt">
      {p.of.marks.map((m) => {
        const before = text(at, m.start);
        at = m.end;
        return (
          <>
            {before}
            <mark>{text(m.start, m.end)}</mark>
          </>
        );
      })}
      {text(at)}
    </p>
  );
}

const rows = 400, // lines of a place that differs, of either side
  columns = 2000; // characters of a line

// Hunks are the places at which two texts differ.
export function Hunks(p: { of: KnowledgePageHunk[]; label: string }) {
  return (
    <div class="diff">
      <div class="lines" tabIndex={0} role="region" aria-label={p.label}>
        {p.of.map((h, i) => (
          <div key={i} class="hunk">
            {h.removed.slice(0, rows).map((l, n) => (
              <Line key={n} sign="−" old={h.old_line + n} text={l} />
            ))}
            <Rest n={h.removed.length - rows} />
            {h.added.slice(0, rows).map((l, n) => (
              <Line key={n} sign="+" now={h.new_line + n} text={l} />
            ))}
            <Rest n={h.added.length - rows} />
          </div>
        ))}
      </div>
    </div>
  );
}

function Line(p: { sign: string; old?: number; now?: number; text: string }) {
  return (
    <div class={p.now ? "dl add" : "dl del"}>
      <i>{p.old}</i>
      <i>{p.now}</i>
      <span class="sign">{p.sign}</span>
      <span class="tx">
        {inert(p.text.slice(0, columns))}
        {p.text.length > columns && "…"}
      </span>
    </div>
  );
}

const Rest = (p: { n: number }) => (p.n > 0 ? <p class="dim">and {p.n} more lines</p> : null);
