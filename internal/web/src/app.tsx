// The dashboard: the page of the address in its frame, and the keys that work everywhere.
import { render, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useErrorBoundary, useLayoutEffect, useRef, useState } from "preact/hooks";
import { account, signedOut } from "./api";
import { listed, Within } from "./doors";
import { Bottom, help, menu, Rail, Stale } from "./frame";
import { missed, start as startLive, turn } from "./live";
import { pages, type Entry } from "./pages";
import { go, here, match, start as startRoute, type PageProps, type Params } from "./route";
import { load, may, me, refused, signIn, start as startSession } from "./session";
import { start as startLook } from "./look";
import { Dialog } from "./ui/dialog";
import { more } from "./ui/more";
import { bind, start as startKeys } from "./ui/keys";
import { Late } from "./ui/late";
import { actions } from "./ui/actions";
import { openActions, Palette } from "./ui/palette";
import { arrive, Confirm, Empty, Loading, Trouble } from "./ui/parts";
import { leave as leaveToast, Toast } from "./ui/toast";
import { start as startTrail, step, up as ascend } from "./ui/trail";
import { start as startWaits } from "./waits";
import { NewTask, openNewTask } from "./pages/newtask";
import { effect } from "@preact/signals";

function find(path: string): { entry: Entry; params: Params } | undefined {
  for (const entry of pages) {
    const params = match(entry.path, path);
    if (params) return { entry, params };
  }
}

// Page draws the page of the address. Its code comes when it is first visited.
function Page() {
  const path = here.value.pathname,
    hit = find(path);
  const [made, set] = useState<{ entry: Entry; page: ComponentType<PageProps> } | undefined>(),
    [failed, setFailed] = useState<unknown>();
  const main = useRef<HTMLElement>(null),
    first = useRef(true);
  useEffect(() => {
    if (!hit) return;
    let on = true;
    setFailed(undefined);
    Promise.all([hit.entry.load(), hit.entry.path === "/ui" || more()]).then(
      ([m]) => {
        if (on) set({ entry: hit.entry, page: m.default });
      },
      (e) => {
        if (on) setFailed(e);
      },
    );
    return () => {
      on = false;
    };
  }, [hit?.entry]);
  // the organisation that the tab acts for, once it is known what the person may do there
  const known = me.value && (!account.value || account.value === me.value.account.id) ? me.value.account.id : undefined;
  useLayoutEffect(() => {
    // the focus goes to the heading of a new page as it is drawn: later, it would leave a field somebody types into
    if (first.current) {
      first.current = false;
      return;
    }
    arrive();
    const h = main.current?.querySelector("h1");
    (h instanceof HTMLElement ? h : main.current)?.focus();
  }, [path, made?.page, known]);
  const P = made && made.entry === hit?.entry ? made.page : undefined;
  return (
    <main id="main" ref={main} tabIndex={-1}>
      {!hit ? (
        <>
          <h1>There is nothing here</h1>
          <Empty>
            No page has this address. <a href="/ui/">Go home</a>.
          </Empty>
        </>
      ) : hit.entry.needs && !may(hit.entry.needs) ? (
        <>
          <h1>{hit.entry.name ?? "Not for you"}</h1>
          <Empty>
            This page needs the scope <code>{hit.entry.needs.scope}</code>, which you do not have here.
          </Empty>
        </>
      ) : failed ? (
        <Trouble
          error={new Error("The page could not be loaded. The server may have been replaced by a newer one.")}
          again={() => location.reload()}
        />
      ) : P && known ? ( // so that no page asks for what the person may not read
        <Guard key={known + path}>
          <Within shown={path} of={hit.entry} />
          <P params={hit.params} />
        </Guard>
      ) : !me.value && refused.value ? (
        <>
          <h1>Not for you</h1>
          <Trouble error={refused.value} />
        </>
      ) : (
        <Loading />
      )}
    </main>
  );
}

// Guard keeps a fault of a page to the page, and tells it.
function Guard(p: { children: ComponentChildren }) {
  const [error, reset] = useErrorBoundary((e) => console.error(e));
  return error ? (
    <>
      <h1 tabIndex={-1}>This page has a fault</h1>
      <Trouble error={error} again={reset} />
    </>
  ) : (
    <>{p.children}</>
  );
}

// SignedOut says that the session is gone, over the page, which stays as it is.
function SignedOut() {
  const lost = signedOut.value && me.value;
  useEffect(() => {
    if (!lost) return;
    const see = () => {
      if (!document.hidden)
        void load().then(() => {
          if (!signedOut.value) missed();
        });
    };
    addEventListener("focus", see);
    return () => removeEventListener("focus", see);
  }, [!!lost]);
  return lost ? (
    <Dialog
      title="You are signed out"
      close={() => {
        signedOut.value = false;
      }}
    >
      <p>The session has ended. Sign in, in this tab or another, and go on here.</p>
      <div class="acts">
        <a class="button" href={signIn()} target="_blank" rel="noopener">
          Sign in, in a new tab
        </a>
        <a class="button main" href={signIn()}>
          Sign in
        </a>
      </div>
    </Dialog>
  ) : null;
}

function App() {
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Rail />
      <Stale />
      <Page />
      <Bottom />
      <Toast />
      <Palette fill={() => import("./finds").then((m) => m.start(listed))} />
      <Confirm />
      <NewTask />
      <Late
        open={help.value}
        load={() => import("./cards/help").then((m) => m.Help)}
        close={() => {
          help.value = false;
        }}
      />
      <SignedOut />
    </>
  );
}

// up shows the page above in the address.
function up() {
  for (let at = here.value.pathname.replace(/\/+$/, ""); at.length > 3; ) {
    at = at.replace(/\/[^/]*$/, "");
    if (at === "/ui" || find(at)?.entry.path.endsWith("...}") === false) return ascend(at);
  }
}

// The keys and commands that work everywhere.
bind([
  {
    keys: "?",
    does: "this table",
    group: "Everywhere",
    run: () => {
      help.value = true;
    },
  },
  { keys: "c", does: "new task or ask", group: "Everywhere", run: openNewTask },
  { keys: "u, Backspace", does: "up, to the list one came from", group: "Everywhere", run: up },
  {
    keys: "[, ]",
    does: "previous, next object of the list one came from",
    group: "Everywhere",
    run: (e) => step(e.key === "[" ? -1 : 1),
  },
  {
    keys: ".",
    does: "actions of this page or object",
    group: "Everywhere",
    run: () => openActions(() => actions(false)),
  },
  {
    keys: "/",
    does: "search in the page",
    group: "Everywhere",
    run: () => document.querySelector<HTMLInputElement>("main input[type=search]")?.focus(),
  },
  ...pages
    .filter((p) => p.key && p.name)
    .map((p) => ({
      keys: "g " + p.key,
      does: p.section === "Settings" ? p.section : p.name!,
      group: "Go to",
      run: () => go(p.path === "/ui" ? "/ui/" : p.path),
    })),
]);

effect(() => {
  void here.value.pathname;
  menu.value = false;
  leaveToast();
});
effect(() => {
  if (turn.value.gap) void load();
}); // after a gap somebody else may be signed in, or act for another account

startTrail();
startRoute();
startKeys();
startLook();
startSession();
startLive();
startWaits();
render(<App />, document.getElementById("app")!);
