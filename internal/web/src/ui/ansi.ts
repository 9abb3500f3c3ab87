// Escape sequences of a terminal, as far as a log needs them: colours and weights.
// Everything that moves a cursor is dropped; a carriage return starts the line again.
export type Span = { text: string; class: string };

const sgr = /\x1b\[([\d;]*)m/g;
const other = /\x1b(?:\[[0-?]*[ -/]*[@-ln-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[()*+][0-9A-Za-z]|[ -/]*[0-Z\\^-~])/g;
// What is invisible or turns text around is shown by its number.
const hidden = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

// inert shows characters that cannot be seen, or that turn text around, as their numbers.
export const inert = (s: string) => s.replace(hidden, (c) => "‹U+" + c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0") + "›");

const strip = (s: string) => s.includes("\x1b") ? s.replace(other, "") : s;

// plain is text without escape sequences.
export const plain = (s: string) => s.includes("\x1b") ? strip(s).replace(sgr, "").replaceAll("\x1b", "") : s;

// spans takes a line apart into pieces of one look.
export function spans(line: string): Span[] {
  if (!line.includes("\x1b")) return [{ text: inert(line), class: "" }];
  line = strip(line);
  const out: Span[] = [];
  let at = 0, colour = "", bold = false;
  const push = (text: string) => {
    text = text.replaceAll("\x1b", "");
    if (text) out.push({ text: inert(text), class: [colour, bold ? "b" : ""].filter(Boolean).join(" ") });
  };
  for (const m of line.matchAll(sgr)) {
    push(line.slice(at, m.index));
    at = m.index + m[0].length;
    const codes = (m[1] || "0").split(";").map(Number);
    for (let i = 0; i < codes.length; i++) {
      const c = codes[i]!;
      if (c === 0) { colour = ""; bold = false; }
      else if (c === 1) bold = true;
      else if (c === 22) bold = false;
      else if (c >= 30 && c <= 37 || c >= 90 && c <= 97) colour = "c" + c % 10;
      else if (c === 39) colour = "";
      else if (c === 38 || c === 48) i += codes[i + 1] === 5 ? 2 : codes[i + 1] === 2 ? 4 : 0; // of a larger palette
    }
  }
  push(line.slice(at));
  return out;
}
