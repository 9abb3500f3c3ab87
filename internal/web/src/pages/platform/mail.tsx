// Mail that is not sent, and addresses that mail servers have refused.
import {
  mailClearRefusal,
  mailList,
  mailRefusals,
  mailRetry,
  type MailRefusal,
  type QueuedMail,
} from "../../client.gen";
import { useMailed } from "../../cards/signin";
import { useList } from "../../list";
import { query, setQuery } from "../../route";
import { inert } from "../../ui/ansi";
import { Cards } from "../../ui/inputs";
import { many } from "../../ui/money";
import { Act, Head, Tabs } from "../../ui/parts";
import { Status } from "../../ui/status";
import { span, Time } from "../../ui/time";
import { OperatorKey } from "./key";

export default function Mail() {
  const mailed = useMailed(),
    show = query().get("show") ?? "all";
  const list = useList<QueuedMail>(show, (cursor, signal) =>
    mailList({ cursor, per_page: 50, filter: show === "all" ? [] : ["state:" + show] }, { signal }),
  );
  const refused = useList<MailRefusal & { id: string }>("refused", async (cursor, signal) => {
    const page = await mailRefusals({ cursor, per_page: 50 }, { signal });
    return { ...page, data: page.data.map((r) => ({ ...r, id: r.address })) };
  });
  return (
    <>
      <Head title="Mail">
        <Tabs
          label="Show"
          all={["all", "due", "failed"]}
          at={show}
          to={(s) => setQuery({ show: s === "all" ? "" : s })}
        />
        <span class="grow" />
        <OperatorKey />
      </Head>
      {mailed === false && (
        <p>
          This server sends no mail: it has no mail server (<code>smtp-url</code>). Each mail is a file in its data
          folder; on the server, <code>yardmaster mail</code> lists them and <code>yardmaster mail ADDRESS</code> shows
          the newest one to an address.
        </p>
      )}
      <h2>Not sent</h2>
      <Cards
        list={list}
        label="Mails"
        empty={mailed === false ? "None waits to be written." : "All mail is sent."}
        row={(m) => (
          <>
            <div>
              <p>
                {inert(m.to)}{" "}
                <span class="dim">
                  waits for {span(m.age_seconds).trim()}, tried {many(m.tries, "time")}, next <Time at={m.due_at} />
                </span>
              </p>
              {m.last_error && <p class="trouble">{inert(m.last_error)}</p>}
            </div>
            <div class="acts">
              <Status of={m.state === "due" ? "waiting" : "failed"} say={m.state} />
              <Act
                call={mailRetry}
                input={{ id: m.id }}
                done={() => {
                  void list.load();
                  return "It is tried now.";
                }}
              >
                Try now
              </Act>
            </div>
          </>
        )}
      />
      <h2>Refused addresses</h2>
      <p class="dim">Notifications are not mailed there.</p>
      <Cards
        list={refused}
        label="Refusals"
        empty="None."
        row={(r) => (
          <>
            <div>
              <p>
                {inert(r.address)}{" "}
                <span class="dim">
                  <Time at={r.refused_at} />
                </span>
              </p>
              <p>{inert(r.reason)}</p>
            </div>
            <div class="acts">
              <Act
                call={mailClearRefusal}
                input={{ address: r.address }}
                confirm={`Mail to ${r.address} again?`}
                done={() => {
                  void refused.load();
                  return "Mail goes there again.";
                }}
              >
                Clear
              </Act>
            </div>
          </>
        )}
      />
    </>
  );
}
