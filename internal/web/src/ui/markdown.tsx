// Markdown by people and agents, drawn as elements: no HTML passes, a link shows where
// it leads, an image is a link. What it does not know it shows as it is.
import type { ComponentChildren } from "preact";
import { inert } from "./ansi";

const inline = /(`+)(.+?)\1|\*\*(.+?)\*\*|__(.+?)__|\*([^\s*][^*]*?)\*|(!?)\[([^\]]*)\]\(([^\s)]+)[^)]*\)|(https?:\/\/[^\s<>()]+[^\s<>().,;:!?'"])/;

// Text draws the marks within a line.
export function pieces(s: string, depth = 0): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  while (s) {
    const m = depth < 8 ? inline.exec(s) : null;
    if (!m) { out.push(inert(s)); break; }
    if (m.index) out.push(inert(s.slice(0, m.index)));
    const [all, , code, bold, bold2, em, image, label, to, bare] = m;
    if (code !== undefined) out.push(<code>{inert(code.trim() || code)}</code>);
    else if (bold ?? bold2) out.push(<strong>{pieces((bold ?? bold2)!, depth + 1)}</strong>);
    else if (em) out.push(<em>{pieces(em, depth + 1)}</em>);
    else out.push(link(to ?? bare ?? "", label === undefined ? undefined : (image ? "image: " : "") + label, all));
    s = s.slice(m.index + all.length);
  }
  return out;
}

// link draws a link to the web with the host it leads to, and anything else as text.
function link(to: string, label: string | undefined, all: string): ComponentChildren {
  let url: URL;
  try { url = new URL(to); } catch { return inert(all); }
  if (url.protocol !== "https:" && url.protocol !== "http:") return inert(all);
  const host = label && !label.includes(url.host) && url.origin !== location.origin ? <small> ({inert(url.host)})</small> : null;
  return <a href={url.href} rel="noreferrer noopener" target="_blank">{inert(label || to)}{host}</a>;
}

export function Markdown(p: { text: string }) {
  return <div class="md">{blocks(p.text.replaceAll("\r\n", "\n").split("\n"))}</div>;
}

function blocks(lines: string[]): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  for (let i = 0; i < lines.length;) {
    const line = lines[i]!;
    const fence = /^\s{0,3}(```+|~~~+)/.exec(line)?.[1];
    if (fence) {
      const code: string[] = [];
      for (i++; i < lines.length && !lines[i]!.trimStart().startsWith(fence); i++) code.push(lines[i]!);
      i++;
      out.push(<pre tabIndex={0}><code>{inert(code.join("\n"))}</code></pre>);
      continue;
    }
    const head = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (head) { out.push(<p class="h" role="heading" aria-level={Math.min(6, head[1]!.length + 2)}>{pieces(head[2]!)}</p>); i++; continue; }
    if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) { out.push(<hr />); i++; continue; }
    if (/^\s*>/.test(line)) {
      const quote: string[] = [];
      for (; i < lines.length && /^\s*>/.test(lines[i]!); i++) quote.push(lines[i]!.replace(/^\s*> ?/, ""));
      out.push(<blockquote>{quote.length < 5000 && quote.some((q) => !/^\s*>/.test(q)) ? blocks(quote) : inert(quote.join("\n"))}</blockquote>);
      continue;
    }
    const item = /^\s*([-*+]|\d+[.)])\s+/;
    if (item.test(line)) {
      const items: ComponentChildren[] = [], numbered = /^\s*\d/.test(line);
      for (; i < lines.length && item.test(lines[i]!); ) {
        let text = lines[i++]!.replace(item, "");
        while (i < lines.length && /^\s{2,}\S/.test(lines[i]!) && !item.test(lines[i]!)) text += " " + lines[i++]!.trim();
        const box = /^\[([ xX])\]\s/.exec(text);
        items.push(<li>{box ? (box[1] === " " ? "☐ " : "☑ ") : ""}{pieces(box ? text.slice(box[0].length) : text)}</li>);
      }
      out.push(numbered ? <ol>{items}</ol> : <ul>{items}</ul>);
      continue;
    }
    if (line.includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[i + 1] ?? "")) {
      const cells = (s: string) => s.trim().replace(/^\||\|$/g, "").split("|").map((c) => c.trim());
      const names = cells(line), rows: string[][] = [];
      for (i += 2; i < lines.length && lines[i]!.includes("|"); i++) rows.push(cells(lines[i]!));
      out.push(<table><thead><tr>{names.map((c) => <th>{pieces(c)}</th>)}</tr></thead><tbody>{rows.map((r) => <tr>{names.map((_, k) => <td>{pieces(r[k] ?? "")}</td>)}</tr>)}</tbody></table>);
      continue;
    }
    if (!line.trim()) { i++; continue; }
    const text = [line.trim()];
    for (i++; i < lines.length && lines[i]!.trim() && !/^\s{0,3}(#{1,6}\s|>|```|~~~|[-*+]\s|\d+[.)]\s)/.test(lines[i]!); i++) text.push(lines[i]!.trim());
    out.push(<p>{pieces(text.join(" "))}</p>);
  }
  return out;
}
