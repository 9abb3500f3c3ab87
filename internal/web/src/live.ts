// What changes, as it changes: the patches of the topics of /v1/streams. One stream a
// browser, not one a tab: over HTTP/1.1 a browser has six connections to a server, and
// a stream keeps one. The tab that holds a Web Lock reads and tells the others through
// a BroadcastChannel; when it goes, the next one takes over.
import { computed, effect, signal } from "@preact/signals";
import { account } from "./api";
import { streamSubscribe, type StreamPatch, type StreamReady } from "./client.gen";
import { me } from "./session";
import { follow, type Frame, type Link } from "./sse";

// Patch tells how a row is now. One that was there when the stream opened is marked: it tells
// what is there, and not that anything has changed.
export type Patch = Omit<StreamPatch, "row"> & { row: any; there?: true };

// topics are those that some page shows. The server leaves out those that the person
// may not see.
const topics = [
  "tasks",
  "asks",
  "plans",
  "blockers",
  "prs",
  "approvals",
  "ci",
  "runners",
  "sessions",
  "repos",
  "notifications",
  "escalations",
  "groups",
  "budgets",
];

export const link = signal<Link>("retrying");
// turn is another one with each stream that opens. After a gap what is shown is asked for
// anew; the first stream of a page follows none.
export const turn = signal({ gap: false });
// asOf is when the rows were last known to be fresh, in milliseconds, but for those of now.
export const asOf = signal(Date.now());

let open = false; // whether a stream is open, as far as this tab was told
let heard = false; // whether one was open before, or failed to

// missed says that something may have changed unseen.
export function missed() {
  turn.value = { gap: true };
}

function opened() {
  turn.value = { gap: heard };
  heard = true;
}

function become(s: Link) {
  if (s === "live" || link.peek() === "live") asOf.value = Date.now();
  heard ||= open || s !== "live"; // the tab that read may be gone, and another read at once
  open = s === "live";
  link.value = s;
}

// opening tells of each turn whether it is that of a first stream: what was asked for beside
// it is not asked for again because of it.
export function opening(): (t: { gap: boolean }) => boolean {
  let was = turn.peek();
  return (t) => {
    const first = t !== was && !t.gap;
    was = t;
    return first;
  };
}

const listeners = new Map<string, Set<(patches: Patch[]) => void>>();

// listen calls on with the patches of a topic, at most once an animation frame. It
// returns what stops it.
export function listen(topic: string, on: (patches: Patch[]) => void): () => void {
  let all = listeners.get(topic);
  if (!all) listeners.set(topic, (all = new Set()));
  all.add(on);
  return () => {
    all.delete(on);
  };
}

// changes calls on with what has changed of a topic, and not with what was there.
export function changes(topic: string, on: (patches: Patch[]) => void): () => void {
  return listen(topic, (all) => {
    const news = all.filter((p) => !p.there);
    if (news.length) on(news);
  });
}

let queue: Patch[] = [];
let due = 0;

function flush() {
  due = 0;
  const by = new Map<string, Patch[]>();
  for (const p of queue) {
    const had = by.get(p.topic);
    if (had) had.push(p);
    else by.set(p.topic, [p]);
  }
  queue = [];
  for (const [topic, patches] of by) for (const on of listeners.get(topic) ?? []) on(patches);
}

// receive queues patches. A hidden tab gets no animation frames.
export function receive(patches: Patch[]) {
  queue.push(...patches);
  due ||= document.hidden ? window.setTimeout(flush, 200) : requestAnimationFrame(flush);
}

type Note = { patches: Patch[] } | { link: Link } | { opened: true } | { ask: true };

// reading takes the frames of one stream after another. What ready counts is there, and what
// comes after it has changed.
function reading(ready: () => void, on: (patches: Patch[]) => void) {
  let there: Record<string, number> = {};
  return (batch: Frame[]) => {
    const patches: Patch[] = [];
    for (const f of batch) {
      if (f.event === "ready") {
        there = { ...(JSON.parse(f.data) as StreamReady).snapshot };
        ready();
      } else if (f.event === "patch") {
        const p = JSON.parse(f.data) as Patch,
          left = there[p.topic];
        if (left) {
          there[p.topic] = left - 1;
          p.there = true;
        }
        patches.push(p);
      }
    }
    if (patches.length) on(patches);
  };
}

// whose names the tabs that may hear each other: those of one person in one account.
const whose = computed(() => me.value && (me.value.user?.id ?? "") + "-" + (account.value || me.value.account.id));

// start reads for the account that this tab acts for, and anew when it changes.
export function start() {
  effect(() => {
    if (!whose.value) return;
    open = heard = false;
    const off = new AbortController();
    read(whose.value, off.signal);
    return () => off.abort();
  });
}

function read(id: string, off: AbortSignal) {
  const url = streamSubscribe({ topics: topics.join(",") });
  if (!navigator.locks) return whileSeen(url, off);
  const name = "yardmaster-live-" + id;
  const channel = new BroadcastChannel(name);
  let leads = false;
  const hear = (n: Note) => {
    if ("patches" in n) receive(n.patches);
    else if ("link" in n) become(n.link);
    else if ("opened" in n) opened();
    else if (leads) channel.postMessage({ link: link.peek() } satisfies Note);
  };
  const tell = (n: Note) => {
    hear(n);
    channel.postMessage(n);
  };
  channel.onmessage = (e: MessageEvent<Note>) => hear(e.data);
  off.addEventListener("abort", () => channel.close());
  channel.postMessage({ ask: true } satisfies Note);
  navigator.locks
    .request(name, { signal: off }, () => {
      leads = true;
      const on = reading(
        () => tell({ opened: true }),
        (patches) => tell({ patches }),
      );
      return follow(url, on, off, { state: (s) => tell({ link: s }) });
    })
    .catch(() => {});
}

// whileSeen is for pages without a secure context (plain http on a name that is not
// loopback), where there are no locks: each tab reads for itself while it is seen.
function whileSeen(url: string, off: AbortSignal) {
  let own: AbortController | undefined;
  const see = () => {
    if (document.hidden || off.aborted) {
      own?.abort();
      own = undefined;
      become("paused");
      return;
    }
    if (own) return;
    own = new AbortController();
    follow(url, reading(opened, receive), own.signal, { state: become });
  };
  document.addEventListener("visibilitychange", see);
  off.addEventListener("abort", () => {
    document.removeEventListener("visibilitychange", see);
    own?.abort();
  });
  see();
}
