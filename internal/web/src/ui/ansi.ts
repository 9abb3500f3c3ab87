// Escape sequences of a terminal, as far as a log needs them: colours and weights.
// Everything that moves a cursor is dropped; a carriage return starts the line again.
export type Span = { text: string; class: string };

const sgr = /\x1b\[([\d;]*)m/g;
const other =
  /\x1b(?:\[[0-?]*[ -/]*[@-ln-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[()*+][0-9A-Za-z]|[ -/]*[0-Z\\^-~])/g;
// What is invisible or turns text around is shown by its number: the same characters as in
// the Go package inert. A variation selector that draws a symbol as text or as a picture stays.
const hidden = new RegExp(
  "[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u034f\\u0600-\\u0605\\u061c\\u06dd\\u070f\\u0890\\u0891\\u08e2\\u115f\\u1160" +
    "\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0d\\ufeff\\uffa0" +
    "\\ufff0-\\ufffb\\u{110bd}\\u{110cd}\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]" +
    "|(?<!(?![\\x00-\\x7f\\u2800])\\p{S}|[0-9#*\\u203c\\u2049\\u3030])[\\ufe0e\\ufe0f]",
  "gu",
);

// inert shows characters that cannot be seen, or that turn text around, as their numbers.
export const inert = (s: string) =>
  s.replace(hidden, (c) => "‹U+" + c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0") + "›");

const strip = (s: string) => (s.includes("\x1b") ? s.replace(other, "") : s);

// plain is text without escape sequences.
export const plain = (s: string) => (s.includes("\x1b") ? strip(s).replace(sgr, "").replaceAll("\x1b", "") : s);

// A Look is the colour, "" or a digit, and the weight of letters.
type Look = { colour: string; bold: boolean };

// painted is a look after a sequence that sets it.
function painted(look: Look, sequence: string): Look {
  let { colour, bold } = look;
  const codes = (sequence || "0").split(";").map(Number);
  for (let i = 0; i < codes.length; i++) {
    const c = codes[i]!;
    if (c === 0) {
      colour = "";
      bold = false;
    } else if (c === 1) bold = true;
    else if (c === 22) bold = false;
    else if ((c >= 30 && c <= 37) || (c >= 90 && c <= 97)) colour = String(c % 10);
    else if (c === 39) colour = "";
    else if (c === 38 || c === 48) i += codes[i + 1] === 5 ? 2 : codes[i + 1] === 2 ? 4 : 0; // of a larger palette
  }
  return { colour, bold };
}

// pieces takes a line apart where its look changes. The texts of the pieces are plain.
function pieces(line: string): { text: string; look: Look }[] {
  line = strip(line);
  const out: { text: string; look: Look }[] = [];
  let at = 0,
    look: Look = { colour: "", bold: false };
  const push = (text: string) => {
    text = text.replaceAll("\x1b", "");
    if (text) out.push({ text, look });
  };
  for (const m of line.matchAll(sgr)) {
    push(line.slice(at, m.index));
    at = m.index + m[0].length;
    look = painted(look, m[1]!);
  }
  push(line.slice(at));
  return out;
}

// spans takes a line apart into pieces of one look.
export function spans(line: string): Span[] {
  if (!line.includes("\x1b")) return [{ text: inert(line), class: "" }];
  return pieces(line).map(({ text, look }) => ({
    text: inert(text),
    class: [look.colour && "c" + look.colour, look.bold ? "b" : ""].filter(Boolean).join(" "),
  }));
}

// parted cuts a line before some letters of its plain text, in ascending order. Each part
// begins with the look that the line has there.
export function parted(line: string, cuts: number[]): string[] {
  if (!line.includes("\x1b")) return [0, ...cuts].map((a, i) => line.slice(a, cuts[i]));
  const out: string[] = [];
  let part = "",
    at = 0,
    next = 0;
  for (const { text, look } of pieces(line)) {
    const set = (look.bold ? "\x1b[1m" : "") + (look.colour && `\x1b[3${look.colour}m`),
      end = set && "\x1b[0m";
    let from = 0;
    for (; next < cuts.length && cuts[next]! < at + text.length; next++) {
      const to = cuts[next]! - at;
      if (to > from) part += set + text.slice(from, to) + end;
      out.push(part);
      part = "";
      from = to;
    }
    part += set + text.slice(from) + end;
    at += text.length;
  }
  out.push(part);
  return out;
}
