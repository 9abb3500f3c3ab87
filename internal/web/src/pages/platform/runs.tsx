// Runs of any account, by their id. The page says that looking is recorded, before it
// looks.
import { useEffect, useMemo, useState } from "preact/hooks";
import { accountPlatformRunGet, accountPlatformRunTail, type PlatformRun } from "../../client.gen";
import { useOne } from "../../list";
import { query, setQuery } from "../../route";
import { follow, type Link } from "../../sse";
import { inert } from "../../ui/ansi";
import { Log } from "../../ui/log";
import { Coming, Fact, Facts, Head, Id } from "../../ui/parts";
import { Status, words } from "../../ui/status";
import { Time, Took } from "../../ui/time";
import { Transcript } from "../../ui/transcript";

export default function Runs() {
  const id = query().get("run") ?? "",
    [looks, look] = useState(false);
  return (
    <div class={looks && id ? "room" : undefined}>
      <Head title="Runs" />
      <p class="hold">
        What an agent said and did is a tenant's data. That you look, at whose run and when, is written to the{" "}
        <a href="/ui/platform/trail">trail</a> before anything is shown.
      </p>
      <form
        class="tools"
        onSubmit={(e) => {
          e.preventDefault();
          setQuery({ run: String(new FormData(e.currentTarget).get("run") ?? "").trim() });
          look(true);
        }}
      >
        <input name="run" aria-label="Id of the run" placeholder="id of the run" defaultValue={id} size={38} />
        <button type="submit" class="main">
          Look
        </button>
      </form>
      {looks && id && <Run key={id} id={id} />}
    </div>
  );
}

function Run(p: { id: string }) {
  const one = useOne<PlatformRun>(p.id, (signal) => accountPlatformRunGet({ runId: p.id }, { signal })),
    r = one.value.value,
    lines = useMemo(() => new Transcript(), []),
    [state, set] = useState<Link>("retrying");
  useEffect(() => {
    if (!r) return;
    const off = new AbortController();
    void follow(
      accountPlatformRunTail({ runId: p.id }),
      (batch) => {
        for (const f of batch) if (f.event === "event") lines.event(JSON.parse(f.data));
      },
      off.signal,
      {
        ended: (b) => b.some((f) => f.event === "end"),
        state: (s) => {
          if (s === "live") {
            lines.clear();
            lines.steps = [];
          }
          set(s);
        },
      },
    ); // it cannot be resumed: it begins anew
    return () => off.abort();
  }, [!!r]);
  void lines.version.value;
  if (!r) return <Coming of={one} />;
  return (
    <section class="room run" aria-label="Run">
      <Facts>
        <Fact name="State">
          <Status of={r.run.outcome ?? r.run.state} noun="run" />
        </Fact>
        <Fact name="Account">
          <a href={"/ui/platform/accounts/" + r.account_id}>{inert(r.account)}</a>
        </Fact>
        <Fact name="Task">
          <Id of={r.run.task_id} />
        </Fact>
        <Fact name="Agent">
          {[r.run.agent, r.run.model]
            .filter(Boolean)
            .map((x) => inert(x!))
            .join(" ")}
        </Fact>
        <Fact name="Took">
          <Took from={r.run.started_at} to={r.run.ended_at} />
        </Fact>
        <Fact name="Last word">
          <Time at={r.progress_at} />
        </Fact>
      </Facts>
      <p class="dim">
        <span class={"link " + state}>{state === "ended" ? "The run is over." : words(state)}</span>
      </p>
      <Log lines={lines} id="transcript" label="Transcript of the run" tail={state !== "ended"} />
    </section>
  );
}
