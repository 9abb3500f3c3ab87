// Server-sent events over fetch: unlike EventSource it sends headers (which
// organisation, where to go on), sees the problem document of a refusal, and stops at
// a clean end.
import { headers, refusal, signedOut, Problem } from "./api";

export type Frame = { id: string; event: string; data: string };
export type Link = "live" | "retrying" | "refused" | "ended" | "paused";

// Reader takes a stream apart into frames. A frame may come in several pieces.
export class Reader {
  lastId = "";
  private rest = "";
  private cr = false;
  // take returns the frames that a piece of text completes.
  take(text: string): Frame[] {
    if (this.cr && text.startsWith("\n")) text = text.slice(1);
    this.cr = text.endsWith("\r");
    this.rest += text.replace(/\r\n?/g, "\n");
    const out: Frame[] = [];
    let at = 0;
    for (let end = 0; (end = this.rest.indexOf("\n\n", at)) >= 0; at = end + 2) {
      const f = this.frame(this.rest.slice(at, end));
      if (f) out.push(f);
    }
    this.rest = this.rest.slice(at);
    return out;
  }
  private frame(text: string): Frame | undefined {
    const f: Frame = { id: this.lastId, event: "message", data: "" };
    let data = false;
    for (const line of text.split("\n")) {
      if (!line || line.startsWith(":")) continue;
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const v = colon < 0 ? "" : line.slice(colon + (line[colon + 1] === " " ? 2 : 1));
      if (field === "data") {
        f.data += (data ? "\n" : "") + v;
        data = true;
      } else if (field === "event") f.event = v;
      else if (field === "id") this.lastId = f.id = v;
    }
    return data ? f : undefined;
  }
}

// once reads a stream until the server ends it, and returns the id of its last frame;
// nothing if the end was heard before.
async function once(
  url: string,
  on: (batch: Frame[]) => void,
  off: AbortSignal,
  lastId: string,
  opened: () => void,
): Promise<string | undefined> {
  const head: Record<string, string> = { Accept: "text/event-stream", ...headers() };
  if (lastId) head["Last-Event-ID"] = lastId;
  const res = await fetch(url, { headers: head, signal: off, credentials: "same-origin", cache: "no-store" });
  if (res.status === 204) return undefined;
  if (!res.ok || !res.body) {
    if (res.status === 401) signedOut.value = true;
    throw refusal(res, await res.json().catch(() => ({})));
  }
  opened();
  const frames = new Reader();
  frames.lastId = lastId;
  const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return frames.lastId;
    const batch = frames.take(value);
    if (batch.length) on(batch);
  }
}

// follow reads a stream, and again from its last frame when it breaks, until it is
// stopped, refused, or ended. ended tells from a batch that nothing more will come; from is
// the frame after which it begins.
export async function follow(
  url: string,
  on: (batch: Frame[]) => void,
  off: AbortSignal,
  how: {
    state?: (s: Link, why?: string) => void;
    ended?: (batch: Frame[]) => boolean;
    resume?: boolean;
    from?: string;
  },
): Promise<void> {
  let wait = 500,
    last = how.from ?? "";
  while (!off.aborted) {
    let over = false,
      after = 0;
    try {
      const end = await once(
        url,
        (b) => {
          wait = 500;
          if (how.resume) last = b[b.length - 1]!.id || last;
          over ||= how.ended?.(b) ?? false;
          on(b);
        },
        off,
        last,
        () => how.state?.("live"),
      );
      if (over || end === undefined) return how.state?.("ended");
      if (how.resume) last = end;
    } catch (e) {
      if (off.aborted) return;
      if (over) return how.state?.("ended");
      if (e instanceof Problem) {
        if (e.status < 500 && e.status !== 429 && e.status !== 401) return how.state?.("refused", e.message);
        after = e.after * 1000;
      }
    }
    how.state?.("retrying");
    await new Promise((go) => setTimeout(go, Math.max(after, wait * (0.7 + Math.random() * 0.6))));
    wait = Math.min(wait * 2, 15_000);
  }
}
