// Amounts of money, which the API gives as decimal strings, null where no price is known.
export function usd(v: string | number | null | undefined): string {
  if (v === null || v === undefined) return "–";
  const n = Number(v);
  return Number.isFinite(n) ? "$" + n.toFixed(n !== 0 && Math.abs(n) < 0.01 ? 4 : 2) : "–";
}

export const count = (n: number) => n.toLocaleString("en");

// many is a number of things, whose plural has an s.
export const many = (n: number, one: string) => `${count(n)} ${n === 1 ? one : one + "s"}`;
