// The documents of the program. Their list and texts are files beside the dashboard, so
// they are the ones of this very version and need no other server.
import { stored } from "./api";
import { anchors } from "./ui/markdown";

export type Heading = { level: number; text: string; id: string };
export type Doc = { name: string; title: string; about: string; path: string; headings: Heading[] };
export type Part = { name: string; docs: Doc[] };

let known: Promise<Part[]> | undefined;

// parts are the documents, asked for once.
export function parts(): Promise<Part[]> {
  known ??= stored("/ui/a/manual.json")
    .then((text) => {
      const all = (JSON.parse(text ?? "{}") as { parts: Part[] }).parts;
      for (const part of all)
        for (const d of part.docs) {
          const id = anchors();
          for (const h of d.headings) h.id = id(h.text);
        }
      return all;
    })
    .catch((e) => {
      known = undefined;
      throw e;
    });
  return known;
}

export const docs = async () => (await parts()).flatMap((p) => p.docs);

// address is where a document is shown, at one of its headings.
export const address = (name: string, id = "") => "/ui/docs/" + name + (id && "#" + id);

// plain is a line of Markdown without its marks.
export const plain = (s: string) => s.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*]/g, "");

// Hit is a line of a document, and the heading that it stands under.
export type Hit = { doc: Doc; heading: Heading | undefined; line: string };

const texts = new Map<string, Promise<string>>();

// textOf is a document whole, asked for once.
export function textOf(d: Doc): Promise<string> {
  let had = texts.get(d.path);
  if (!had) {
    had = stored(d.path).then((t) => t ?? "");
    had.catch(() => texts.delete(d.path));
    texts.set(d.path, had);
  }
  return had;
}

// prose is a line of a document without the marks of lists, quotes, tables and headings.
const prose = (line: string) =>
  plain(/^\s*\|/.test(line) ? line.replace(/^[\s|]+|[\s|]+$/g, "").replace(/\s*(?<!\\)\|\s*/g, " · ") : line)
    .replace(/^[\s>#-]+|^\d+\. |\s+$/g, "")
    .replaceAll("\\|", "|");

// around is the part of a line that a word stands in, cut between words.
function around(line: string, word: string): string {
  const at = line.toLowerCase().indexOf(word),
    from = at > 60 ? line.lastIndexOf(" ", at - 50) + 1 : 0,
    to = line.length > from + 200 ? line.lastIndexOf(" ", from + 200) : line.length;
  return (from ? "…" : "") + line.slice(from, to) + (to < line.length ? "…" : "");
}

// search finds the first line below each heading that has all words of a text, at most so
// many lines.
export async function search(text: string, most: number): Promise<Hit[]> {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean),
    hits: Hit[] = [];
  if (!words.length) return hits;
  for (const doc of await docs()) {
    const rest = [...doc.headings];
    let heading: Heading | undefined,
      hit = false;
    for (const line of (await textOf(doc)).split("\n")) {
      const name = /^#{2,6} +(.*?) *#*$/.exec(line)?.[1];
      if (name !== undefined && rest[0]?.text === name) {
        heading = rest.shift();
        hit = false;
        continue;
      }
      if (hit) continue;
      const said = prose(line),
        low = said.toLowerCase();
      if (!words.every((w) => low.includes(w))) continue;
      hit = true;
      hits.push({ doc, heading, line: around(said, words[0]!) });
      if (hits.length >= most) return hits;
    }
  }
  return hits;
}
