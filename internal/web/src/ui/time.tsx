// Times: how long ago, and exactly for who points at it or hears it.
import { signal } from "@preact/signals";

const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 10_000);
document.addEventListener("visibilitychange", () => {
  now.value = Date.now();
});

// span is a number of seconds in one unit, or two where the second matters.
export function span(s: number): string {
  s = Math.max(0, Math.round(s));
  if (s < 60) return s + " s";
  if (s < 3600) return Math.floor(s / 60) + " min";
  if (s < 86_400) return Math.floor(s / 3600) + " h " + (s % 3600 >= 60 ? Math.floor((s % 3600) / 60) + " min" : "");
  const days = Math.floor(s / 86_400),
    hours = Math.floor((s % 86_400) / 3600);
  return days + " d" + (days < 3 && hours ? ` ${hours} h` : "");
}

// ahead is how long it is until then: the fortnight that has just begun is one.
const ahead = (s: number) => (s >= 3 * 86_400 ? Math.round(s / 86_400) + " d" : span(s));

export function Time(p: { at: string | null | undefined; suffix?: boolean }) {
  if (!p.at) return <span>–</span>;
  void now.value;
  const t = Date.parse(p.at),
    s = (Date.now() - t) / 1000;
  const text = s < -1 ? "in " + ahead(-s).trim() : span(s).trim() + (p.suffix === false ? "" : " ago");
  return (
    <time dateTime={p.at} title={new Date(t).toLocaleString()}>
      {text}
    </time>
  );
}

// Took is how long something took, or takes.
export function Took(p: { from: string | null | undefined; to: string | null | undefined }) {
  if (!p.from) return <span>–</span>;
  return <span class="num">{span(((p.to ? Date.parse(p.to) : now.value) - Date.parse(p.from)) / 1000)}</span>;
}
