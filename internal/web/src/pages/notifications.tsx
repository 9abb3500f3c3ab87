// Notifications: the inbox of who looks.
import {
  notificationArchive,
  notificationKinds,
  notificationList,
  notificationRead,
  notificationReadAll,
  notificationUnread,
  type Notification,
} from "../client.gen";
import { said, type Call } from "../api";
import { useList } from "../list";
import { go, query, setQuery } from "../route";
import { inert } from "../ui/ansi";
import { many } from "../ui/money";
import { Act, Head, Tabs } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Table } from "../ui/table";
import { Time } from "../ui/time";
import { tell } from "../ui/toast";
import { table } from "../own";

const shows: Record<string, (n: Notification) => boolean> = table({
  inbox: (n) => !n.archived_at,
  unread: (n) => !n.archived_at && !n.read_at,
  archived: (n) => !!n.archived_at,
});

// placeOf is the page of this dashboard that an address leads to, if it does.
function placeOf(url: string): string | undefined {
  try {
    const u = new URL(url, location.href);
    return u.pathname.startsWith("/ui/") ? u.pathname + u.search + u.hash : undefined;
  } catch {
    return;
  }
}

const now = () => new Date().toISOString();

// became is what a settled row says of what it is about, where its kind tells that.
const became: Record<string, string> = table({
  escalation: "resolved",
  box: "works again",
});

export default function Notifications() {
  const show = query().get("show") ?? "inbox",
    kind = query().get("kind") ?? "",
    fits = shows[show] ?? shows["inbox"]!;
  const list = useList<Notification>(
    show + kind,
    (cursor, signal) =>
      notificationList(
        {
          cursor,
          per_page: 100,
          filter: [...(show === "inbox" ? [] : ["state:" + show]), ...(kind ? ["kind:" + kind] : [])],
        },
        { signal },
      ),
    { topic: "notifications", fits: (n) => fits(n) && (!kind || n.kind === kind) },
  );
  const mark = async (n: Notification, call: Call<{ id: string }, Notification>, change: Partial<Notification>) => {
    const answered = list.assume(n.id, change); // it is shown before the server has said so
    try {
      answered(await call({ id: n.id }));
    } catch (e) {
      answered();
      tell(said(e));
    }
  };
  const read = (n: Notification) => {
    if (!n.read_at) void mark(n, notificationRead, { read_at: now() });
  };
  const open = (n: Notification) => {
    read(n);
    const to = placeOf(n.url);
    if (to) go(to);
    else window.open(n.url, "_blank", "noopener,noreferrer");
  };
  const archive = (n: Notification) =>
    void mark(n, notificationArchive, { archived_at: now(), read_at: n.read_at ?? now() }).then(() =>
      tell("Archived."),
    );
  const turn = (n: Notification) => {
    if (n.read_at) void mark(n, notificationUnread, { read_at: null, archived_at: null });
    else read(n);
  };
  return (
    <section class="room">
      <Head title="Inbox" count={list.count}>
        <Tabs label="Show" all={Object.keys(shows)} at={show} to={(s) => setQuery({ show: s === "inbox" ? "" : s })} />
        <select aria-label="Kind" value={kind} onChange={(e) => setQuery({ kind: e.currentTarget.value })}>
          <option value="">All kinds</option>
          {notificationKinds.map((k) => (
            <option key={k} value={k}>
              {words(k)}
            </option>
          ))}
        </select>
        <span class="grow" />
        <Act
          call={notificationReadAll}
          input={{}}
          done={() => {
            void list.load();
            return "All are read.";
          }}
        >
          Mark all read
        </Act>
      </Head>
      <p class="dim desk">
        <small>
          <kbd>m</kbd> read or unread, <kbd>e</kbd> archive, <kbd>Enter</kbd> open
        </small>
      </p>
      <Table
        list={list}
        id="inbox"
        label="Notifications"
        widths="130px minmax(0,1fr) minmax(0,150px) 230px 160px"
        keys={[
          { keys: "m", does: "read or unread", run: turn },
          { keys: "e", does: "archive", run: archive },
          { keys: "Enter", does: "open what it is about", run: open },
        ]}
        empty={show === "inbox" ? "Nothing has happened that concerns you." : "There is none."}
        columns={[
          {
            name: "Kind",
            cell: (n) => (
              <Status
                of={
                  n.archived_at || n.settled_at
                    ? "archived"
                    : n.urgent
                      ? "needs_person"
                      : n.read_at
                        ? "ended"
                        : "unread"
                }
                say={words(n.kind)}
              />
            ),
          },
          {
            name: "What",
            cell: (n) => (
              <span class={n.read_at || n.settled_at ? undefined : "unread"}>
                <a
                  href={placeOf(n.url) ?? n.url}
                  {...(placeOf(n.url) ? {} : { target: "_blank", rel: "noreferrer noopener" })}
                  onClick={() => read(n)}
                >
                  {inert(n.title)}
                </a>
                {n.count > 1 && <small> · {many(n.count, "time")}</small>} <small>{inert(n.text)}</small>
              </span>
            ),
          },
          { name: "Repository", class: "dim less", cell: (n) => n.repo ?? "" },
          {
            name: "",
            class: "less",
            cell: (n) => (
              <span class="acts">
                <button type="button" tabIndex={-1} onClick={() => turn(n)}>
                  {n.read_at ? "Mark unread" : "Mark read"}
                </button>
                {!n.archived_at && (
                  <button type="button" tabIndex={-1} onClick={() => archive(n)}>
                    Archive
                  </button>
                )}
              </span>
            ),
          },
          {
            name: "Age",
            class: "dim end",
            cell: (n) => (
              <>
                {n.settled_at ? (
                  <>
                    {became[n.kind] ?? "over"} <Time at={n.settled_at} />
                  </>
                ) : (
                  <Time at={n.updated_at} suffix={false} />
                )}
                {!n.archived_at && (
                  <button type="button" class="phone" tabIndex={-1} onClick={() => archive(n)}>
                    Archive
                  </button>
                )}
              </>
            ),
          },
        ]}
      />
    </section>
  );
}
