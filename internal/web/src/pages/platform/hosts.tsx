// Code hosts that the server is connected to, and what they have sent.
import { codeHostDeliveries, codeHostList, codeHostReplay, type CodeHostDelivery } from "../../client.gen";
import { useList, useOne } from "../../list";
import { query, setQuery } from "../../route";
import { inert } from "../../ui/ansi";
import { bytes } from "../../ui/every";
import { Cards } from "../../ui/inputs";
import { many } from "../../ui/money";
import { Act, Code, Coming, Empty, Head, Tabs } from "../../ui/parts";
import { Status } from "../../ui/status";
import { Time } from "../../ui/time";
import { OperatorKey } from "./key";

export default function Hosts() {
  const one = useOne("hosts", (signal) => codeHostList({}, { signal })),
    show = query().get("show") ?? "all";
  const list = useList<CodeHostDelivery & { id: string }>(show, async (cursor, signal) => {
    const page = await codeHostDeliveries(
      { cursor, per_page: 100, filter: show === "all" ? [] : ["state:" + show] },
      { signal },
    );
    return { ...page, data: page.data.map((d) => ({ ...d, id: d.guid })) };
  });
  return (
    <>
      <Head title="Code hosts">
        <span class="grow" />
        <OperatorKey />
      </Head>
      {!one.value.value ? (
        <Coming of={one} />
      ) : one.value.value.data.length === 0 ? (
        <Empty>
          Only the built-in one. Connect GitHub with <Code text="yardmaster github setup" />
        </Empty>
      ) : (
        <ul class="cards" aria-label="Code hosts">
          {one.value.value.data.map((h) => (
            <li key={h.name} class="item tall">
              <div>
                <p>
                  <strong>{inert(h.name)}</strong>{" "}
                  <span class="dim">
                    App {inert(h.app)} of {inert(h.owner)}, connected <Time at={h.created_at} />
                  </span>
                </p>
                <p class="dim">
                  {Object.entries(h.switches)
                    .filter(([, on]) => on)
                    .map(([k]) => k)
                    .join(", ") || "no permissions besides the usual"}{" "}
                  ·{" "}
                  <a
                    href={`${h.address}/apps/${encodeURIComponent(h.app)}/installations/new`}
                    target="_blank"
                    rel="noreferrer noopener"
                  >
                    install it
                  </a>
                </p>
              </div>
              <ul>
                {h.installations.map((i) => (
                  <li key={i.id}>
                    {inert(i.owner)}{" "}
                    <Status
                      of={i.gone_at ? "withdrawn" : i.suspended_at ? "suspended" : "enabled"}
                      say={i.gone_at ? "removed" : i.suspended_at ? "suspended" : "installed"}
                    />{" "}
                    <a href={"/ui/platform/accounts/" + i.account_id}>account</a>
                  </li>
                ))}
              </ul>
            </li>
          ))}
        </ul>
      )}
      <h2>What they sent</h2>
      <Tabs
        label="Show"
        all={["all", "stored", "applied", "ignored", "failed"]}
        at={show}
        to={(s) => setQuery({ show: s === "all" ? "" : s })}
      />
      <Cards
        list={list}
        label="Deliveries"
        empty="Nothing, in 30 days."
        row={(d) => (
          <>
            <div>
              <p>
                <code>{inert(d.kind)}</code>{" "}
                <span class="dim">
                  from {inert(d.host)}, <Time at={d.received_at} />, {bytes(d.bytes)}, tried {many(d.tries, "time")}
                </span>
              </p>
              {d.error && <p class="trouble">{inert(d.error)}</p>}
            </div>
            <div class="acts">
              <Status
                of={d.state === "stored" ? "waiting" : d.state === "ignored" ? "skipped" : d.state}
                say={d.state}
              />
              <Act
                call={codeHostReplay}
                input={{ guid: d.guid }}
                confirm="Apply it once more?"
                done={() => {
                  void list.load();
                  return "Applied once more.";
                }}
              >
                Apply again
              </Act>
            </div>
          </>
        )}
      />
    </>
  );
}
