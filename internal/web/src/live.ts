// What changes, as it changes: the patches of the topics of /v1/streams. One stream a
// browser, not one a tab: over HTTP/1.1 a browser has six connections to a server, and
// a stream keeps one. The tab that holds a Web Lock reads and tells the others through
// a BroadcastChannel; when it goes, the next one takes over.
import { computed, effect, signal } from "@preact/signals";
import { account } from "./api";
import { streamSubscribe, type StreamPatch } from "./client.gen";
import { me } from "./session";
import { follow, type Frame, type Link } from "./sse";

export type Patch = Omit<StreamPatch, "row"> & { row: any };

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
// turn counts the streams that were opened: after a gap what is shown is asked for anew.
export const turn = signal(0);
// asOf is when the rows were last known to be fresh, in milliseconds.
export const asOf = signal(Date.now());

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
  asOf.value = Date.now();
  due ||= document.hidden ? window.setTimeout(flush, 200) : requestAnimationFrame(flush);
}

type Note = { patches: Patch[] } | { link: Link; opened: boolean } | { ask: true };

function patchesOf(batch: Frame[]): Patch[] {
  return batch.filter((f) => f.event === "patch").map((f) => JSON.parse(f.data) as Patch);
}

// whose names the tabs that may hear each other: those of one person in one account.
const whose = computed(() => me.value && (me.value.user?.id ?? "") + "-" + (account.value || me.value.account.id));

// start reads for the account that this tab acts for, and anew when it changes.
export function start() {
  effect(() => {
    if (!whose.value) return;
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
  const tell = (n: Note) => channel.postMessage(n);
  channel.onmessage = (e: MessageEvent<Note>) => {
    const n = e.data;
    if ("patches" in n) receive(n.patches);
    else if ("link" in n) {
      link.value = n.link;
      if (n.opened) turn.value++;
    } else if (leads) tell({ link: link.value, opened: false });
  };
  off.addEventListener("abort", () => channel.close());
  tell({ ask: true });
  navigator.locks
    .request(name, { signal: off }, () => {
      leads = true;
      return follow(
        url,
        (b) => {
          const patches = patchesOf(b);
          if (!patches.length) return;
          receive(patches);
          tell({ patches });
        },
        off,
        {
          state: (s) => {
            link.value = s;
            if (s === "live") turn.value++;
            tell({ link: s, opened: s === "live" });
          },
        },
      );
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
      link.value = "paused";
      return;
    }
    if (own) return;
    own = new AbortController();
    follow(url, (b) => receive(patchesOf(b)), own.signal, {
      state: (s) => {
        link.value = s;
        if (s === "live") turn.value++;
      },
    });
  };
  document.addEventListener("visibilitychange", see);
  off.addEventListener("abort", () => {
    document.removeEventListener("visibilitychange", see);
    own?.abort();
  });
  see();
}
