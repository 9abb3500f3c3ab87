// One run by its id: its transcript, and where it belongs.
import { sessionGet, sessionList, type Session } from "../client.gen";
import { NamedTask } from "../cards/named";
import { RunLog } from "../cards/runlog";
import { useOne } from "../list";
import type { PageProps } from "../route";
import { may } from "../session";
import { Fact, Facts, Head, Id } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Status } from "../ui/status";
import { Time, Took } from "../ui/time";

export default function RunPage(p: PageProps) {
  const id = p.params.id!;
  const one = useOne<{ of?: Session }>(
      id,
      async (signal) => {
        if (!may(sessionList)) return {};
        const of = (await sessionList({ filter: ["run:" + id], limit: 1 }, { signal })).data[0];
        return of ? { of } : {};
      },
      { counts: ["sessions"] },
    ),
    s = one.value.value?.of;
  return (
    <div class="room">
      <Head title="Run">{s && <Status of={s.outcome ?? (s.ended_at ? "ended" : "running")} noun="run" />}</Head>
      {s && (
        <>
          <Facts>
            {s.task_id && (
              <Fact name="Task">
                <NamedTask id={s.task_id} />
              </Fact>
            )}
            <Fact name="Session">
              <a href={"/ui/sessions/" + s.id}>its calls and cost</a>
            </Fact>
            {s.repo && (
              <Fact name="Repository">
                <a href={"/ui/repos/" + s.repo}>{s.repo}</a>
              </Fact>
            )}
            <Fact name="Artifacts">
              <a href={"/ui/artifacts?run=" + id}>what it stored</a>
            </Fact>
            <Fact name="Took">
              <Took from={s.started_at} to={s.ended_at} />
            </Fact>
            <Fact name="Begun">
              <Time at={s.started_at} />
            </Fact>
            <Fact name="Id">
              <Id of={id} />
            </Fact>
          </Facts>
          <Raw call={sessionGet} input={{ id: s.id }} of={s} />
        </>
      )}
      <RunLog key={id} run={id} live={!!s && !s.ended_at} />
    </div>
  );
}
