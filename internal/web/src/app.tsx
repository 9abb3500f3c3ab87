// The frame: the way to every page, the state of the connection, who looks.
import { render, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useErrorBoundary, useLayoutEffect, useRef, useState } from "preact/hooks";
import { actFor, account, signedOut } from "./api";
import { notificationCounts } from "./client.gen";
import { start as startFinds } from "./finds";
import { asOf, link, listen, start as startLive, turn } from "./live";
import { pages, type Entry } from "./pages";
import { go, here, match, start as startRoute, type PageProps, type Params } from "./route";
import { forget, load, may, me, operator, signIn, start as startSession } from "./session";
import { start as startTheme } from "./theme";
import { Dialog } from "./ui/dialog";
import { all, bind, single, setSingle, start as startKeys } from "./ui/keys";
import { actions } from "./ui/actions";
import { openActions, openPalette, Palette } from "./ui/palette";
import { arrive, Confirm, Empty, Loading, Trouble } from "./ui/parts";
import { Toast } from "./ui/toast";
import { back, start as startTrail, step } from "./ui/trail";
import { NewTask, openNewTask } from "./pages/newtask";
import { signal, effect } from "@preact/signals";

const help = signal(false), menu = signal(false), unread = signal(0);

// listed are the pages that the person may see.
const listed = () => pages.filter((p) => p.name && (!p.needs || may(p.needs)) && (!p.operators || operator.value));

function find(path: string): { entry: Entry; params: Params } | undefined {
  for (const entry of pages) {
    const params = match(entry.path, path);
    if (params) return { entry, params };
  }
}

// Page draws the page of the address. Its code comes when it is first visited.
function Page() {
  const path = here.value.pathname, hit = find(path);
  const [made, set] = useState<{ entry: Entry; page: ComponentType<PageProps> } | undefined>(), [failed, setFailed] = useState<unknown>();
  const main = useRef<HTMLElement>(null), first = useRef(true);
  useEffect(() => {
    if (!hit) return;
    let on = true;
    setFailed(undefined);
    hit.entry.load().then((m) => { if (on) set({ entry: hit.entry, page: m.default }); }, (e) => { if (on) setFailed(e); });
    return () => { on = false; };
  }, [hit?.entry]);
  useLayoutEffect(() => { // the focus goes to the heading of a new page as it is drawn: later, it would leave a field somebody types into
    if (first.current) { first.current = false; return; }
    arrive();
    const h = main.current?.querySelector("h1");
    (h instanceof HTMLElement ? h : main.current)?.focus();
  }, [path, made?.page]);
  const P = made && made.entry === hit?.entry ? made.page : undefined;
  return <main id="main" ref={main} tabIndex={-1}>
    {!hit ? <><h1>There is nothing here</h1><Empty>No page has this address. <a href="/ui/">Go home</a>.</Empty></>
      : hit.entry.needs && !may(hit.entry.needs) ? <><h1>{hit.entry.name ?? "Not for you"}</h1><Empty>This page needs the scope <code>{hit.entry.needs.scope}</code>, which you do not have here.</Empty></>
        : failed ? <Trouble error={new Error("The page could not be loaded. The server may have been replaced by a newer one.")} again={() => location.reload()} />
          : P ? <Guard key={path}><P params={hit.params} /></Guard> : <Loading />}</main>;
}

// Guard keeps a fault of a page to the page, and tells it.
function Guard(p: { children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary((e) => console.error(e));
  return error ? <><h1 tabIndex={-1}>This page has a fault</h1><Trouble error={error} again={reset} /></> : <>{p.children}</>;
}

const sections = ["", "Work", "Fleet", "Knowledge", "Insight", "Settings", "Platform"];

function Rail() {
  const path = here.value.pathname;
  // The page in the rail that is nearest to the address.
  const at = listed().filter((p) => p.path === "/ui" ? /^\/ui\/?$/.test(path) : (path + "/").startsWith(p.path + "/")).sort((a, b) => b.path.length - a.path.length)[0];
  const current = (p: Entry) => p === at;
  return <nav aria-label="Main" class={menu.value ? "open" : undefined}>
    <a class="brand" href="/ui/"><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 20V4M4 14c8 0 8-10 16-10v16" /></svg>Yardmaster</a>
    {sections.map((s) => {
      const own = listed().filter((p) => (p.section ?? "") === s);
      return own.length > 0 && <div key={s} class="section">{s && <h2>{s}</h2>}
        {own.map((p) => <a key={p.path} href={p.path === "/ui" ? "/ui/" : p.path} aria-current={current(p) ? "page" : undefined} onClick={() => { menu.value = false; }}>{p.name}
          {p.path === "/ui/notifications" && unread.value > 0 && <span class="n" title="unread notifications">{unread.value}</span>}</a>)}</div>;
    })}
    <span class="grow" />
    <button type="button" class="plain" onClick={openPalette}>Search <kbd>Ctrl K</kbd></button>
    <button type="button" class="plain" onClick={() => { help.value = true; }}>Keys <kbd>?</kbd></button>
    <Who /></nav>;
}

const links: Record<string, string> = { live: "Live", retrying: "Reconnecting", refused: "Refused", ended: "Ended", paused: "Paused" };

// leave signs out once nothing of the person is left in the browser.
function leave(e: Event) {
  const form = e.currentTarget as HTMLFormElement;
  e.preventDefault();
  void forget().finally(() => form.submit());
}

function Who() {
  const m = me.value;
  return <div class="who">
    <p class={"link " + link.value} title={"Rows as of " + new Date(asOf.value).toLocaleTimeString()}>{links[link.value]}</p>
    {m && m.memberships.length > 1 ? <select aria-label="Organisation" value={account.value || m.account.id} onChange={(e) => { actFor(e.currentTarget.value); go("/ui/"); }}>
      {m.memberships.map((x) => <option key={x.account_id} value={x.account_id}>{x.login}</option>)}</select> : <p>{m?.account.login}</p>}
    <form method="post" action="/auth/logout" onSubmit={leave}><span class="dim">{m?.user?.login ?? m?.user?.name}</span><input type="hidden" name="return_to" value="/login" /><button class="plain">Sign out</button></form></div>;
}

// Bottom is the way around on a phone.
function Bottom() {
  const at = (p: string) => here.value.pathname.replace(/\/$/, "") === p ? "page" as const : undefined;
  return <nav class="bottom" aria-label="Short"><a href="/ui/" aria-current={at("/ui")}>Home</a><a href="/ui/tasks" aria-current={at("/ui/tasks")}>Tasks</a>
    <a href="/ui/approvals" aria-current={at("/ui/approvals")}>Approvals</a><button type="button" onClick={openPalette}>Search</button>
    <button type="button" aria-expanded={menu.value} onClick={() => { menu.value = !menu.value; }}>More</button></nav>;
}

function Help() {
  if (!help.value) return null;
  const groups = new Map<string, { keys: string; does: string }[]>();
  for (const b of all()) {
    const g = b.group ?? "This page", own = groups.get(g) ?? [];
    if (!own.some((x) => x.keys === b.keys)) own.push(b);
    groups.set(g, own);
  }
  return <Dialog title="Keys" close={() => { help.value = false; }}>
    <label class="check"><input type="checkbox" checked={single.value} onChange={(e) => setSingle(e.currentTarget.checked)} /> Single letters do something</label>
    {[...groups].map(([g, list]) => <section key={g}><h3>{g}</h3><dl class="keys">{list.map((b) => <div key={b.keys}><dt><kbd>{b.keys}</kbd></dt><dd>{b.does}</dd></div>)}</dl></section>)}
  </Dialog>;
}

// SignedOut says that the session is gone, over the page, which stays as it is.
function SignedOut() {
  const lost = signedOut.value && me.value;
  useEffect(() => {
    if (!lost) return;
    const see = () => { if (!document.hidden) void load().then(() => { if (!signedOut.value) turn.value++; }); };
    addEventListener("focus", see);
    return () => removeEventListener("focus", see);
  }, [!!lost]);
  return lost ? <Dialog title="You are signed out" close={() => { signedOut.value = false; }}>
    <p>The session has ended. Sign in, in this tab or another, and go on here.</p>
    <div class="acts"><a class="button" href={signIn()} target="_blank" rel="noopener">Sign in, in a new tab</a><a class="button main" href={signIn()}>Sign in</a></div></Dialog> : null;
}

function App() {
  return <><a class="skip" href="#main">Skip to content</a><Rail /><Page /><Bottom /><Toast /><Palette /><Confirm /><NewTask /><Help /><SignedOut /></>;
}

// up shows the page above in the address.
function up() {
  for (let at = here.value.pathname.replace(/\/+$/, ""); at.length > 3; ) {
    at = at.replace(/\/[^/]*$/, "");
    if (at === "/ui" || find(at)) return go(back(at) ?? (at === "/ui" ? "/ui/" : at));
  }
}

// The keys and commands that work everywhere.
bind([
  { keys: "?", does: "this table", group: "Everywhere", run: () => { help.value = true; } },
  { keys: "c", does: "new task or ask", group: "Everywhere", run: openNewTask },
  { keys: "u, Backspace", does: "up, to the list one came from", group: "Everywhere", run: up },
  { keys: "[, ]", does: "previous, next object of the list one came from", group: "Everywhere", run: (e) => step(e.key === "[" ? -1 : 1) },
  { keys: ".", does: "actions of this page or object", group: "Everywhere", run: () => openActions(() => actions(false)) },
  { keys: "/", does: "search in the page", group: "Everywhere", run: () => document.querySelector<HTMLInputElement>("main input[type=search]")?.focus() },
  ...pages.filter((p) => p.key && p.name).map((p) => ({ keys: "g " + p.key, does: p.name!, group: "Go to", run: () => go(p.path === "/ui" ? "/ui/" : p.path) })),
]);
startFinds(listed);

async function countUnread() {
  try { unread.value = (await notificationCounts({})).unread; } catch { /* an operator's key has no inbox */ }
}
let soon = 0;
listen("notifications", () => { soon ||= window.setTimeout(() => { soon = 0; void countUnread(); }, 300); });
effect(() => { if (turn.value && me.value) void countUnread(); });
effect(() => { if (turn.value > 1) void load(); }); // after a gap somebody else may be signed in, or act for another account

startTrail();
startRoute();
startKeys();
startTheme();
startSession();
startLive();
render(<App />, document.getElementById("app")!);
