// Markdown by people and agents, drawn as elements: no HTML passes, a link shows where
// it leads, an image is a link. What it does not know it shows as it is.
import type { ComponentChildren } from "preact";
import { inert } from "./ansi";

// opens is where a mark may begin. All below takes time in proportion to the text, whatever
// the text is: a closing mark is looked for once, and what was found is kept.
const opens = /[`*_![]|https?:\/\//g,
  web = /https?:\/\/[^\s<>()]+/y;

// most is the length from which a text is shown as it is, and wide that of a table.
const most = 200_000,
  wide = 50;

// How says what is drawn beyond text by strangers: resolve answers the address of a link
// that is no address of the web, or nothing; anchors gives headings ids and real levels;
// wiki has [[name]] and [[name|text]] be links as well.
export type How = {
  wiki?: boolean;
  resolve?: (to: string) => string | undefined;
  anchors?: (heading: string) => string;
};

// pieces draws the marks within a line.
export function pieces(s: string, depth = 0, how: How = {}): ComponentChildren[] {
  if (depth >= 8 || s.length > most) return [inert(s)];
  const out: ComponentChildren[] = [],
    ends = new Map<string, number>();
  // next is where a closing mark comes at or after a place, or -1.
  const next = (mark: string, from: number): number => {
    let at = ends.get(mark);
    if (at === undefined || (at >= 0 && at < from)) ends.set(mark, (at = s.indexOf(mark, from)));
    return at;
  };
  let from = 0,
    at = 0;
  while (at < s.length) {
    opens.lastIndex = at;
    const m = opens.exec(s);
    if (!m) break;
    const i = m.index,
      c = s[i]!;
    let run = 1,
      end = -1,
      node: ComponentChildren;
    if (c === "`" || c === "*" || c === "_") while (s[i + run] === c) run++;
    if (c === "`") {
      const close = run <= 9 ? next(c.repeat(run), i + run) : -1;
      if (close >= 0) {
        const code = s.slice(i + run, close);
        end = close + run;
        node = <code>{inert(code.trim() || code)}</code>;
      }
    } else if (run === 2 || (run === 3 && c === "*")) {
      const close = next(c + c, i + 2);
      if (close > i + 2) {
        end = close + 2;
        node = <strong>{pieces(s.slice(i + 2, close), depth + 1, how)}</strong>;
      }
    } else if (c === "*" && run === 1) {
      const close = /\S/.test(s[i + 1] ?? " ") ? next(c, i + 1) : -1;
      if (close >= 0) {
        end = close + 1;
        node = <em>{pieces(s.slice(i + 1, close), depth + 1, how)}</em>;
      }
    } else if (c === "[" && how.wiki && s[i + 1] === "[") {
      const close = next("]]", i + 2),
        [to = "", label = to] = close >= 0 ? s.slice(i + 2, close).split("|", 2) : [];
      run = 2;
      if (/^[^\s[\]()]+$/.test(to)) {
        end = close + 2;
        node = inside("/" + to.replace(/^\//, ""), label, how.resolve!);
      }
    } else if (c === "[" || (c === "!" && s[i + 1] === "[")) {
      const open = c === "!" ? i + 1 : i,
        middle = next("]", open + 1),
        close =
          middle >= 0 && /[^\s)]/.test(s.slice(middle + 2, middle + 3)) && s[middle + 1] === "("
            ? next(")", middle + 2)
            : -1;
      if (close >= 0) {
        const to = /^\S+/.exec(s.slice(middle + 2, close))![0],
          label = s.slice(open + 1, middle);
        end = close + 1;
        node =
          (c === "[" && label && how.resolve && inside(to, label, how.resolve)) ||
          link(to, (c === "!" ? "image: " : "") + label, s.slice(i, end));
      }
    } else if (c === "h") {
      web.lastIndex = i;
      const to = web.exec(s)?.[0] ?? m[0];
      let n = (run = to.length);
      while (n && ".,;:!?'\"".includes(to[n - 1]!)) n--;
      if (n > m[0].length) {
        end = i + n;
        node = link(to.slice(0, n), undefined, to.slice(0, n));
      }
    }
    at = end < 0 ? i + run : end;
    if (end < 0) continue;
    if (i > from) out.push(inert(s.slice(from, i)));
    out.push(node);
    from = end;
  }
  if (from < s.length) out.push(inert(s.slice(from)));
  return out;
}

// inside draws a link from a document to another one, and what leads to neither one nor the
// web as text.
function inside(to: string, label: string, resolve: NonNullable<How["resolve"]>): ComponentChildren {
  const own = resolve(to);
  if (own) return <a href={own}>{pieces(label, 7)}</a>;
  return /^https?:/.test(to) ? undefined : <span>{pieces(label, 7)}</span>;
}

// link draws a link to the web and anything else as text. The host that it leads to
// stands after it, unless the text itself begins with that.
function link(to: string, label: string | undefined, all: string): ComponentChildren {
  let url: URL;
  try {
    url = new URL(to);
  } catch {
    return inert(all);
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") return inert(all);
  const text = label || to,
    plain = (text + "/").startsWith(url.origin + "/") || (url.origin === location.origin && !url.username);
  return (
    <a href={url.href} rel="noreferrer noopener" target="_blank">
      {inert(text)}
      {plain ? null : <small> ({inert(url.host)})</small>}
    </a>
  );
}

export function Markdown(p: { text: string; how?: How }) {
  const text = p.text.replaceAll("\r\n", "\n");
  return (
    <div class="md">
      {blocks(text.slice(0, most).split("\n"), 0, p.how)}
      {text.length > most && <pre tabIndex={0}>{inert(text.slice(most))}</pre>}
    </div>
  );
}

// Heading is a heading of a document, which a link can lead to, or of a text on a page,
// below those of the page.
function Heading(p: { level: number; text: string; how: How | undefined }) {
  const inner = pieces(p.text, 0, p.how),
    id = p.how?.anchors?.(p.text);
  if (id === undefined)
    return (
      <p class="h" role="heading" aria-level={Math.min(6, p.level + 2)}>
        {inner}
      </p>
    );
  const H = ("h" + Math.max(2, p.level)) as "h2";
  return (
    <H id={id} tabIndex={-1}>
      {inner}
    </H>
  );
}

// anchors answers the ids of headings in their order, as code hosts make them.
export function anchors(): (heading: string) => string {
  const seen = new Map<string, number>();
  return (heading) => {
    const id = heading
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, "")
        .trim()
        .replace(/\s/g, "-"),
      n = seen.get(id) ?? 0;
    seen.set(id, n + 1);
    return n ? id + "-" + n : id;
  };
}

// rule tells whether a line is the one below the names of a table.
const rule = (s: string) => s.includes("-") && cells(s).every((c) => /^:?-+:?$/.test(c));
const cells = (s: string) =>
  s
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/, wide)
    .map((c) => c.trim().replaceAll("\\|", "|"));

function blocks(lines: string[], depth: number, how?: How): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  for (let i = 0; i < lines.length; ) {
    const line = lines[i]!;
    const fence = /^\s{0,3}(```+|~~~+)/.exec(line)?.[1];
    if (fence) {
      const code: string[] = [];
      for (i++; i < lines.length && !lines[i]!.trimStart().startsWith(fence); i++) code.push(lines[i]!);
      i++;
      out.push(
        <pre tabIndex={0}>
          <code>{inert(code.join("\n"))}</code>
        </pre>,
      );
      continue;
    }
    const head = /^(#{1,6})\s+([\s\S]*)$/.exec(line);
    if (head) {
      let text = head[2]!.trimEnd(),
        end = text.length;
      while (text[end - 1] === "#") end--;
      out.push(<Heading level={head[1]!.length} text={text.slice(0, end).trimEnd()} how={how} />);
      i++;
      continue;
    }
    if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      out.push(<hr />);
      i++;
      continue;
    }
    if (/^\s*>/.test(line)) {
      const quote: string[] = [];
      for (; i < lines.length && /^\s*>/.test(lines[i]!); i++) quote.push(lines[i]!.replace(/^\s*> ?/, ""));
      out.push(
        <blockquote>
          {depth < 8 && quote.some((q) => !/^\s*>/.test(q)) ? blocks(quote, depth + 1, how) : inert(quote.join("\n"))}
        </blockquote>,
      );
      continue;
    }
    const item = /^\s*([-*+]|\d+[.)])\s+/;
    if (item.test(line)) {
      const items: ComponentChildren[] = [],
        numbered = /^\s*(\d{1,9})/.exec(line)?.[1];
      for (; i < lines.length && item.test(lines[i]!); ) {
        let text = lines[i++]!.replace(item, "");
        while (i < lines.length && /^\s{2,}\S/.test(lines[i]!) && !item.test(lines[i]!))
          text += " " + lines[i++]!.trim();
        const box = /^\[([ xX])\]\s/.exec(text);
        items.push(
          <li>
            {box ? (box[1] === " " ? "☐ " : "☑ ") : ""}
            {pieces(box ? text.slice(box[0].length) : text, 0, how)}
          </li>,
        );
      }
      out.push(numbered ? <ol start={Number(numbered)}>{items}</ol> : <ul>{items}</ul>);
      continue;
    }
    if (line.includes("|") && rule(lines[i + 1] ?? "")) {
      const names = cells(line),
        rows: string[][] = [];
      for (i += 2; i < lines.length && lines[i]!.includes("|"); i++) rows.push(cells(lines[i]!).slice(0, names.length));
      out.push(
        <div class="scroll" tabIndex={0} role="group" aria-label="Table">
          <table>
            <thead>
              <tr>{names.map((c) => (c ? <th scope="col">{pieces(c, 0, how)}</th> : <td />))}</tr>
            </thead>
            <tbody>
              {rows.map((r) => (
                <tr>
                  {r.map((c) => (
                    <td>{pieces(c, 0, how)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>,
      );
      continue;
    }
    if (!line.trim()) {
      i++;
      continue;
    }
    const text = [line.trim()];
    for (
      i++;
      i < lines.length && lines[i]!.trim() && !/^\s{0,3}(#{1,6}\s|>|```|~~~|[-*+]\s|\d+[.)]\s)/.test(lines[i]!);
      i++
    )
      text.push(lines[i]!.trim());
    out.push(<p>{pieces(text.join(" "), 0, how)}</p>);
  }
  return out;
}
