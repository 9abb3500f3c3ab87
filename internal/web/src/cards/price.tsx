// Prices of models: the four fields of one, and what it says in a line.
import type { ModelPrice } from "../client.gen";
import { number, of, Text } from "../ui/inputs";
import { usd } from "../ui/money";

// priceOf reads the four prices of a form; none if all are empty.
export function priceOf(f: FormData): ModelPrice | undefined {
  if (!["in", "out", "read", "write"].some((n) => of(f, n))) return undefined;
  return {
    input_usd: number(f, "in")!,
    output_usd: number(f, "out")!,
    cache_read_usd: number(f, "read"),
    cache_write_usd: number(f, "write"),
  };
}

export function Prices(p: { wrong: (f: string) => string[] | undefined; under?: string; of?: ModelPrice | null }) {
  const w = (name: string) => () => p.wrong((p.under ?? "") + name),
    v = p.of;
  return (
    <>
      <Text
        name="in"
        label="Input"
        hint="USD for a million tokens"
        wrong={w("input_usd")}
        value={v?.input_usd}
        decimal
      />
      <Text name="out" label="Output" wrong={w("output_usd")} value={v?.output_usd} decimal />
      <Text
        name="read"
        label="Read from a cache"
        hint="empty: as input"
        wrong={w("cache_read_usd")}
        value={v?.cache_read_usd}
        decimal
      />
      <Text
        name="write"
        label="Written to a cache"
        hint="empty: as input"
        wrong={w("cache_write_usd")}
        value={v?.cache_write_usd}
        decimal
      />
    </>
  );
}

export const priced = (v: ModelPrice) => `${usd(v.input_usd)} in, ${usd(v.output_usd)} out a million tokens`;
