// What runs in the browser for TestOneTableOfHiddenCharacters: the characters that the
// dashboard shows by their numbers.
import { inert } from "../../../../web/src/ui/ansi";

function every(is: (c: string) => boolean): number[] {
  const out: number[] = [];
  for (let c = 0; c <= 0x10ffff; c++) if ((c < 0xd800 || c > 0xdfff) && is(String.fromCodePoint(c))) out.push(c);
  return out;
}

const byNumber = (s: string, c: string) => s.endsWith("‹U+" + c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0") + "›");

Object.assign(window, {
  hidden: () => every((c) => byNumber(inert(c), c)),
  // drawn are the characters after which a selector stays.
  drawn: (selector: string) => every((c) => inert(c + selector).endsWith(selector)),
});
