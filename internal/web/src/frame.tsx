// The frame of every page: the way to each, the state of the connection, who looks.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { account, actFor } from "./api";
import { accountActiveAccountSwitch } from "./client.gen";
import { asOf, link } from "./live";
import { pages, type Entry } from "./pages";
import { go, here, match } from "./route";
import { forget, may, me, operator } from "./session";
import { Icon } from "./ui/icon";
import { openPalette } from "./ui/palette";
import { Act } from "./ui/parts";
import { table } from "./own";
import { filing } from "./pages/newtask";
import { counts, unread } from "./waits";

export const help = signal(false),
  menu = signal(false);

// listed are the pages that the person may see.
export const listed = () =>
  pages.filter((p) => p.name && (!p.needs || may(p.needs)) && (!p.operators || operator.value));

const sections = ["", "Work", "Fleet", "Knowledge", "Insight", "Settings", "Platform"];
// folded are the sections that are open only while one is in them, or by hand.
const folded = ["Settings", "Platform"];

export function Rail() {
  const shown = here.value.pathname,
    path = pages.find((p) => p.under && match(p.path, shown))?.under ?? shown;
  // The page in the rail that is nearest to the address.
  const at = listed()
    .filter((p) => (p.path === "/ui" ? /^\/ui\/?$/.test(path) : (path + "/").startsWith(p.path + "/")))
    .sort((a, b) => b.path.length - a.path.length)[0];
  const current = (p: Entry) => p === at,
    open = menu.value;
  useLayoutEffect(() => {
    if (!open) return;
    const shut = (e: KeyboardEvent) => {
      if (e.key === "Escape") menu.value = false;
    };
    addEventListener("keydown", shut);
    return () => removeEventListener("keydown", shut);
  }, [open]);
  return (
    <nav
      aria-label="Main"
      class={open ? "side open" : "side"}
      onClick={(e) => {
        if ((e.target as Element).closest("a")) menu.value = false;
      }}
    >
      <a class="brand" href="/ui/">
        <svg class="glyph" viewBox="0 0 24 24" aria-hidden="true">
          <path d="M4 20V4M4 14c8 0 8-10 16-10v16" />
        </svg>
        Yardmaster
      </a>
      <div class="siderow">
        <button type="button" class="find" onClick={openPalette}>
          <Icon of="search" />
          <span>Search</span>
          <kbd>Ctrl K</kbd>
        </button>
        <button type="button" class="icon" aria-label="New task or ask" title="c" {...filing()}>
          <Icon of="plus" />
        </button>
      </div>
      <div class="ways">
        {sections.map((s) => {
          const own = listed().filter((p) => (p.section ?? "") === s);
          if (!own.length) return null;
          const ways = own.map((p) => <Way key={p.path} of={p} here={current(p)} />);
          return folded.includes(s) ? (
            <details key={s} class="section" open={own.some(current)}>
              <summary>
                <h2>
                  <Icon of={s === "Settings" ? "settings" : "building-2"} />
                  {s}
                  <Icon of="chevron-right" class="chev" />
                </h2>
              </summary>
              {ways}
            </details>
          ) : (
            <div key={s} class="section">
              {s && <h2>{s}</h2>}
              {ways}
            </div>
          );
        })}
      </div>
      <Corner />
    </nav>
  );
}

// Waiting is how many decisions wait for the person.
function Waiting() {
  const n = counts.value?.waiting_for_me.total;
  return n ? (
    <span class="n ask" title={n === 1 ? "One decision waits for you" : n + " decisions wait for you"}>
      {n}
    </span>
  ) : null;
}

function Way(p: { of: Entry; here: boolean }) {
  const way = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (p.here) way.current!.scrollIntoView({ block: "nearest" });
  }, [p.here, me.value]); // who looks takes room below
  return (
    <a ref={way} href={p.of.path === "/ui" ? "/ui/" : p.of.path} aria-current={p.here ? "page" : undefined}>
      {p.of.icon && <Icon of={p.of.icon} />}
      <span class="t">{p.of.name}</span>
      {p.of.path === "/ui" && <Waiting />}
      {p.of.path === "/ui/notifications" && unread.value > 0 && (
        <span class="dot" role="img" aria-label="unread" title={unread.value + " unread"} />
      )}
    </a>
  );
}

const links: Record<string, string> = table({
  live: "Live",
  retrying: "Reconnecting",
  refused: "Refused",
  ended: "Ended",
  paused: "Paused",
});

// leave signs out once nothing of the person is left in the browser.
function leave(e: Event) {
  const form = e.currentTarget as HTMLFormElement;
  e.preventDefault();
  void forget().finally(() => form.submit());
}

// Corner is what stays in sight below the ways: the connection, search, the account, who looks.
function Corner() {
  const m = me.value,
    at = account.value || m?.account.id;
  return (
    <div class="foot">
      <div class="pair">
        <p
          class={"link " + link.value}
          title={
            link.value === "live" ? "Rows follow the server" : "Rows as of " + new Date(asOf.value).toLocaleTimeString()
          }
        >
          {links[link.value]}
        </p>
        <button
          type="button"
          class="ghost icon"
          aria-label="Shortcuts"
          title="Shortcuts (?)"
          onClick={() => {
            help.value = true;
          }}
        >
          <Icon of="circle-help" />
        </button>
      </div>
      {m && m.memberships.length > 1 ? (
        <>
          <select
            aria-label="Organisation"
            value={at}
            onChange={(e) => {
              actFor(e.currentTarget.value);
              go("/ui/");
            }}
          >
            {m.memberships.map((x) => (
              <option key={x.account_id} value={x.account_id}>
                {x.login}
              </option>
            ))}
          </select>
          {account.value && account.value !== m.account.id && (
            <Act
              class="ghost"
              call={accountActiveAccountSwitch}
              input={{ account: account.value }}
              done="New tabs and programs begin with this organisation."
            >
              Make it the default
            </Act>
          )}
        </>
      ) : (
        <p class="strong">{m?.account.login}</p>
      )}
      <form method="post" action="/auth/logout" onSubmit={leave}>
        <span class="dim">{m?.user?.login ?? m?.user?.name}</span>
        <input type="hidden" name="return_to" value="/login" />
        <button type="submit" class="ghost">
          Sign out
        </button>
      </form>
    </div>
  );
}

// Stale says on every page that its rows do not follow the server at the moment.
export function Stale() {
  const [late, set] = useState(false),
    lost = link.value === "retrying" || link.value === "refused";
  useEffect(() => {
    set(false);
    if (!lost) return;
    const t = setTimeout(() => set(true), 1500); // a page that opens, or a short gap, is none
    return () => clearTimeout(t);
  }, [lost]);
  return (
    <p class="stale" role="status">
      {lost && late && (
        <span>
          {links[link.value]}: what you see is as of {new Date(asOf.value).toLocaleTimeString()}.
        </span>
      )}
    </p>
  );
}

// Bottom is the way around on a phone.
export function Bottom() {
  const at = (p: string) => (here.value.pathname.replace(/\/$/, "") === p ? ("page" as const) : undefined);
  return (
    <nav class="bar" aria-label="Short">
      <a href="/ui/" aria-current={at("/ui")}>
        <Icon of="house" />
        Home
        <Waiting />
      </a>
      <a href="/ui/tasks" aria-current={at("/ui/tasks")}>
        <Icon of="layers" />
        Tasks
      </a>
      <a href="/ui/approvals" aria-current={at("/ui/approvals")}>
        <Icon of="circle-check" />
        Approvals
      </a>
      <button type="button" onClick={openPalette}>
        <Icon of="search" />
        Search
      </button>
      <button
        type="button"
        aria-expanded={menu.value}
        onClick={() => {
          menu.value = !menu.value;
        }}
      >
        <Icon of="ellipsis" />
        More
      </button>
    </nav>
  );
}
