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
  known ??= stored("/ui/a/manual.json").then((text) => {
    const all = (JSON.parse(text ?? "{}") as { parts: Part[] }).parts;
    for (const part of all) for (const d of part.docs) { const id = anchors(); for (const h of d.headings) h.id = id(h.text); }
    return all;
  }).catch((e) => { known = undefined; throw e; });
  return known;
}

export const docs = async () => (await parts()).flatMap((p) => p.docs);

// address is where a document is shown, at one of its headings.
export const address = (name: string, id = "") => "/ui/docs/" + name + (id && "#" + id);

// plain is a line of Markdown without its marks.
export const plain = (s: string) => s.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[`*]/g, "");
