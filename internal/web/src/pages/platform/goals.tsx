// Goals of the platform: milestones at its code host, graded.
import { useState } from "preact/hooks";
import { Problem } from "../../api";
import { accountPlatformGoalRename, accountPlatformGoals, type Goal } from "../../client.gen";
import { useOne } from "../../list";
import { inert } from "../../ui/ansi";
import { Form } from "../../ui/form";
import { gate, keyless } from "../../ui/gate";
import { of, Text } from "../../ui/inputs";
import { many } from "../../ui/money";
import { Code, Empty, Fact, Facts, Head, Loading, Meter, Trouble } from "../../ui/parts";
import { Status, words } from "../../ui/status";
import { Time } from "../../ui/time";
import { OperatorKey } from "./key";

const tones: Record<Goal["status"], string> = {
  done: "done",
  overdue: "failed",
  not_started: "waiting",
  stalled: "stale",
  on_track: "running",
};

// unset tells that the server was started without a repository of goals.
const unset = (e: unknown) => e instanceof Problem && e.reason === "not_configured";

export default function Goals() {
  const one = useOne("goals", (signal) => accountPlatformGoals({}, { signal })),
    g = one.value.value,
    [open, set] = useState("");
  return (
    <>
      <Head title="Goals">
        <span class="grow" />
        <OperatorKey />
      </Head>
      {!g ? (
        one.error.value ? (
          unset(one.error.value) ? (
            <Empty>
              No repository of goals is configured: start the server with <Code text="--goals-repo HOST/OWNER/NAME" />
            </Empty>
          ) : (
            <Trouble error={one.error.value} again={() => void one.load()} />
          )
        ) : (
          <Loading />
        )
      ) : (
        <>
          <Facts>
            <Fact name="Repository">{g.repo}</Fact>
            <Fact name="All together">
              <Meter value={g.percent} max={100} label={g.percent + " %"} />
            </Fact>
            <Fact name="Read">
              <Time at={g.read_at} />
            </Fact>
          </Facts>
          {g.data.length === 0 ? (
            <Empty>There is none.</Empty>
          ) : (
            <ul class="cards" aria-label="Goals">
              {g.data.map((x) => (
                <li key={x.id} class="item">
                  <div>
                    <p>
                      <strong>
                        {/^https?:/.test(x.url) ? (
                          <a href={x.url} target="_blank" rel="noreferrer noopener">
                            {inert(x.title)}
                          </a>
                        ) : (
                          inert(x.title)
                        )}
                      </strong>
                    </p>
                    <p class="dim">
                      {x.items_done} of {x.items}
                      {x.due_on && (
                        <>
                          , due <Time at={x.due_on} />
                        </>
                      )}
                      {x.days_since_last_close !== null && `, last closed ${many(x.days_since_last_close, "day")} ago`}
                    </p>
                    {open === x.id && (
                      <Form
                        call={accountPlatformGoalRename}
                        submit="Rename"
                        said="Renamed."
                        done={() => {
                          set("");
                          void one.load();
                        }}
                        read={(f) => ({ id: x.id, title: of(f, "title") ?? "" })}
                      >
                        {(wrong) => <Text name="title" label="Title" wrong={wrong} value={x.title} focus />}
                      </Form>
                    )}
                  </div>
                  <div class="acts">
                    <Status of={tones[x.status]} say={words(x.status)} />
                    <Meter value={x.percent} max={100} label={x.percent + " %"} />
                    <button type="button" {...gate(accountPlatformGoalRename, () => set(x.id), keyless)}>
                      Rename
                    </button>
                  </div>
                </li>
              ))}
            </ul>
          )}
        </>
      )}
    </>
  );
}
