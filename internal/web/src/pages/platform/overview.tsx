// Platform: what there is on the whole server, and who asks to be open source.
import {
  accountOssVerifyDecide,
  accountOssVerifyList,
  accountPlatformOverview,
  type OSSApplication,
} from "../../client.gen";
import { useList, useOne } from "../../list";
import { inert } from "../../ui/ansi";
import { bytes, useEvery } from "../../ui/every";
import { Form } from "../../ui/form";
import { Cards, Choice, of, Text } from "../../ui/inputs";
import { count } from "../../ui/money";
import { Coming, Head } from "../../ui/parts";
import { Time } from "../../ui/time";
import { OperatorKey } from "./key";

export default function Overview() {
  const one = useOne("overview", (signal) => accountPlatformOverview({}, { signal })),
    o = one.value.value;
  const oss = useList<OSSApplication>("oss", (cursor, signal) =>
    accountOssVerifyList({ cursor, per_page: 50 }, { signal }),
  );
  useEvery(60, () => void one.load(), [one]);
  const all: [Exclude<keyof NonNullable<typeof o>, "disk">, many: string, one: string, href: string][] = [
    ["accounts", "accounts", "account", "/ui/platform/accounts"],
    ["users", "users", "user", "/ui/platform/users"],
    ["users_waitlisted", "wait to be let in", "waits to be let in", "/ui/platform/users?show=waitlisted"],
    ["repos", "repositories", "repository", ""],
    ["boxes_online", "boxes online", "box online", ""],
    ["boxes", "boxes", "box", ""],
    ["runs_live", "runs now", "run now", ""],
    ["tasks_queued", "tasks queued", "task queued", ""],
    ["tasks_in_flight", "tasks under way", "task under way", ""],
    ["tasks_stuck", "tasks stuck", "task stuck", ""],
    ["pulls_open", "open pull requests", "open pull request", ""],
    ["approvals_pending", "approvals wait", "approval waits", ""],
    ["escalations_open", "open escalations", "open escalation", ""],
    ["grants_active", "grants", "grant", ""],
    ["oss_pending", "open-source applications", "open-source application", "#oss"],
  ];
  return (
    <>
      <Head title="Platform">
        <span class="grow" />
        <OperatorKey />
      </Head>
      <p class="dim">
        Looking at tenants' data is recorded in the <a href="/ui/platform/trail">trail</a>.
      </p>
      {!o ? (
        <Coming of={one} />
      ) : (
        <div class="figures">
          {all.map(([k, name, one, href]) => (
            <a key={k} href={href || undefined}>
              <b class="num">{count(o[k])}</b>
              {o[k] === 1 ? one : name}
            </a>
          ))}
        </div>
      )}
      {o && (
        <p class="dim">
          Stored: {bytes(o.disk.database_bytes)} of database with {bytes(o.disk.record_bytes)} of texts of accounts,{" "}
          {bytes(o.disk.git_bytes)} of repositories and {bytes(o.disk.object_bytes)} of objects.
        </p>
      )}
      <h2 id="oss">Open-source applications</h2>
      <Cards
        list={oss}
        label="Applications"
        empty="None waits."
        row={(a) => (
          <div>
            <p>
              <a href={"/ui/platform/accounts/" + a.account_id}>account {a.account_id.slice(0, 8)}</a>{" "}
              <span class="dim">
                <Time at={a.updated_at} />
              </span>
            </p>
            <p>
              {/^https?:/.test(a.project_url) ? (
                <a href={a.project_url} target="_blank" rel="noreferrer noopener">
                  {inert(a.project_url)}
                </a>
              ) : (
                inert(a.project_url)
              )}
            </p>
            <p>{inert(a.statement)}</p>
            <Form
              call={accountOssVerifyDecide}
              submit="Decide"
              said="Decided; they are mailed."
              done={() => void oss.load()}
              read={(f) => ({ id: a.id, confirm: true, decision: of(f, "decision") as "approve", note: of(f, "note") })}
            >
              {(wrong) => (
                <>
                  <Choice name="decision" label="Decision" wrong={wrong} value="approve" all={["approve", "reject"]} />
                  <Text name="note" label="Note to them" hint="a rejection needs one" wrong={wrong} />
                </>
              )}
            </Form>
          </div>
        )}
      />
    </>
  );
}
