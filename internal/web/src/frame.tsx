// The frame of every page: the way to each, the state of the connection, who looks.
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useState } from "preact/hooks";
import { account, actFor } from "./api";
import { accountActiveAccountSwitch } from "./client.gen";
import { asOf, link } from "./live";
import { address, open as doors, place, type Door } from "./doors";
import { go, here } from "./route";
import { forget, me } from "./session";
import { Icon } from "./ui/icon";
import { openPalette } from "./ui/palette";
import { Act } from "./ui/parts";
import { table } from "./own";
import { filing } from "./pages/newtask";
import { counts, unread } from "./waits";

export const help = signal(false),
  menu = signal(false);

export function Rail() {
  const at = place(here.value.pathname),
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
        {doors().map((d) => (
          <Entrance key={d.name} of={d} here={!!at && d.ways.includes(at)} />
        ))}
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

function Entrance(p: { of: Door; here: boolean }) {
  return (
    <a href={address(p.of.ways[0]!)} aria-current={p.here ? "page" : undefined} title={p.of.name}>
      <Icon of={p.of.icon} />
      <span class="t">{p.of.name}</span>
      {p.of.name === "Home" && <Waiting />}
      {p.of.name === "Inbox" && unread.value > 0 && (
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
