// One session: its transcript, what it used, and what another policy would have decided.
import { useMemo, useState } from "preact/hooks";
import { said, save } from "../api";
import {
  sessionEvents,
  sessionEventsExport,
  sessionGet,
  sessionReplay,
  type PolicyReplay,
  type Session,
} from "../client.gen";
import { costOf, tokens } from "../cards/sessions";
import { Talk, useTail } from "../cards/talk";
import { useOne } from "../list";
import { query, setQuery, type PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Text } from "../ui/inputs";
import { count } from "../ui/money";
import { Coming, Empty, Fact, Facts, Head, Id, Tabs } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Status, words } from "../ui/status";
import { Time, Took } from "../ui/time";
import { tell } from "../ui/toast";
import { Transcript } from "../ui/transcript";

export default function SessionPage(p: PageProps) {
  const id = p.params.id!,
    tab = query().get("tab") ?? "transcript";
  const one = useOne<Session>(id, (signal) => sessionGet({ id }, { signal }), { topic: "sessions", id }),
    s = one.value.value;
  if (!s)
    return (
      <>
        <Head title="Session" />
        <Coming of={one} />
      </>
    );
  return (
    <div class={tab === "transcript" ? "room" : undefined}>
      <Head title={`Session: ${s.title ? inert(s.title) : words(s.kind)}`}>
        <Status of={s.outcome ?? (s.ended_at ? "ended" : "running")} noun="run" />
        <span class="grow" />
        <button
          type="button"
          onClick={() =>
            void save(sessionEventsExport, { id }, `session-${id.slice(0, 8)}.jsonl`).catch((e) => tell(said(e)))
          }
        >
          Export
        </button>
      </Head>
      <Facts>
        {s.repo && (
          <Fact name="Repository">
            <a href={"/ui/repos/" + s.repo}>{s.repo}</a>
          </Fact>
        )}
        {s.task_id && (
          <Fact name="Task">
            <a href={"/ui/tasks/" + s.task_id}>{s.title ? inert(s.title) : s.task_id.slice(0, 8)}</a>
          </Fact>
        )}
        <Fact name="Kind">{words(s.kind)}</Fact>
        <Fact name="Came of">{words(s.trigger)}</Fact>
        <Fact name="Model">
          {[s.provider, s.model]
            .filter(Boolean)
            .map((x) => inert(x!))
            .join(" ") || "–"}
        </Fact>
        <Fact name="Calls">
          <span class="num">{count(s.calls)}</span>
        </Fact>
        <Fact name="Tokens">
          <span class="num" title={`${s.tokens.input} in, ${s.tokens.output} out, ${s.tokens.cache} cached`}>
            {tokens(s)}
          </span>
        </Fact>
        <Fact name="Cost">{costOf(s)}</Fact>
        <Fact name="Took">
          <Took from={s.started_at} to={s.ended_at} />
        </Fact>
        <Fact name="Begun">
          <Time at={s.started_at} />
        </Fact>
        <Fact name="Id">
          <Id of={s.id} />
        </Fact>
      </Facts>
      <Tabs
        label="Parts of the session"
        all={["transcript", "replay", "raw"]}
        at={tab}
        to={(t) => setQuery({ tab: t === "transcript" ? "" : t })}
      />
      {tab === "replay" ? (
        <Replay of={s} />
      ) : tab === "raw" ? (
        <Raw call={sessionGet} input={{ id }} of={s} open />
      ) : (
        <Happened id={id} plain={!s.run_id} />
      )}
    </div>
  );
}

// Happened is what happened, as it comes. What has no agent is shown as it was recorded.
function Happened(p: { id: string; plain: boolean }) {
  const lines = useMemo(() => new Transcript(), [p.id]),
    tail = useTail(sessionEvents({ id: p.id }), (text) => {
      const e = JSON.parse(text);
      lines.event({ ...e, t: e.at });
      if (p.plain && e.data && Object.keys(e.data).length) lines.add("out", JSON.stringify(e.data, null, 2));
    });
  return <Talk lines={lines} of="session" tail={tail} />;
}

// Replay asks what another policy file would have decided. Nothing is run.
function Replay(p: { of: Session }) {
  const [out, set] = useState<PolicyReplay>();
  if (!p.of.ended_at) return <Empty>A session that goes on cannot be replayed.</Empty>;
  return (
    <>
      <p class="dim">The recorded facts are read against another policy file. Nothing is run or stored.</p>
      <Form
        call={sessionReplay}
        submit="Replay"
        keep
        done={set}
        read={(f) => ({ id: p.of.id, yml: String(f.get("yml") ?? "") })}
      >
        {(wrong) => <Text name="yml" label="Policy file" wrong={wrong} rows={12} code value={"version: 1\n"} />}
      </Form>
      {out && (
        <section aria-label="Decisions" role="status">
          {out.same ? (
            <p>
              <Status of="passed" say="the same" /> Every decision would have come out as it did.
            </p>
          ) : (
            <div class="scroll" tabIndex={0}>
              <table class="bars">
                <thead>
                  <tr>
                    <th>Decision</th>
                    <th>As it was</th>
                    <th>With this file</th>
                    <th>Effect</th>
                  </tr>
                </thead>
                <tbody>
                  {out.diff.map((d) => (
                    <tr key={d.key}>
                      <th scope="row">
                        <code>{inert(d.key)}</code>
                      </th>
                      <td>{d.recorded === null ? "–" : inert(d.recorded)}</td>
                      <td>{d.candidate === null ? "–" : inert(d.candidate)}</td>
                      <td>{inert(d.effect)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
          {out.unknown.length > 0 && (
            <p class="dim">Not recorded, so not compared: {out.unknown.map(inert).join(", ")}.</p>
          )}
        </section>
      )}
    </>
  );
}
