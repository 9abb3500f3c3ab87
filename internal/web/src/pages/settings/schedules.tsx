// Schedules: asks that are filed again and again.
import { useState } from "preact/hooks";
import {
  scheduleCreate,
  scheduleDelete,
  scheduleList,
  scheduleRunNow,
  scheduleUpdate,
  type Schedule,
} from "../../client.gen";
import { Who } from "../../cards/who";
import { useList } from "../../list";
import { useRepos } from "../../whole";
import { useFresh } from "../../ui/every";
import { inert } from "../../ui/ansi";
import { Dialog } from "../../ui/dialog";
import { Form } from "../../ui/form";
import { gate } from "../../ui/gate";
import { Cards, Choice, of, Switch, Text } from "../../ui/inputs";
import { Act, Head } from "../../ui/parts";
import { Status, words } from "../../ui/status";
import { Time } from "../../ui/time";
import { table } from "../../own";

const outcomes: Record<string, string> = table({
  filed: "filed an ask",
  busy: "skipped: the last was not done",
  late: "skipped: the server was off",
  repo_disabled: "not filed: the repository is off",
  repo_gone: "not filed: the repository is gone",
  person_left: "not filed: its person has left",
});

export default function Schedules() {
  const list = useList<Schedule>("schedules", (cursor, signal) => scheduleList({ cursor, per_page: 50 }, { signal }), {
      topic: "asks",
    }),
    [open, set] = useState<Schedule | "new">(),
    again = () => void list.load();
  useFresh(30, list);
  return (
    <>
      <Head title="Schedules">
        <span class="grow" />
        <button type="button" class="main" {...gate(scheduleCreate, () => set("new"))}>
          New schedule
        </button>
      </Head>
      <Cards
        list={list}
        label="Schedules"
        empty="Nothing is filed by itself."
        row={(s) => (
          <>
            <div>
              <p>
                <strong>{inert(s.title)}</strong> <span class="dim">{s.repo ?? "triage picks a repository"}</span>
              </p>
              <p class="dim">
                <code>{inert(s.cron)}</code> {s.zone} ·{" "}
                {s.state === "paused" ? (
                  "paused"
                ) : (
                  <>
                    next <Time at={s.next_at} />
                  </>
                )}
                {s.last_at && (
                  <>
                    {" "}
                    · <Time at={s.last_at} />: {outcomes[s.last_outcome ?? ""] ?? ""}
                  </>
                )}{" "}
                · made by <Who of={s.created_by} />
                {s.last_ask_id && (
                  <>
                    {" "}
                    · <a href={"/ui/asks/" + s.last_ask_id}>its last ask</a>
                  </>
                )}
              </p>
              {s.obstacle && <p class="trouble">It files nothing: {words(s.obstacle)}.</p>}
            </div>
            <div class="acts">
              <Status of={s.state} />
              <Act
                call={scheduleRunNow}
                input={{ id: s.id }}
                done={() => {
                  again();
                  return "Filed.";
                }}
              >
                Run now
              </Act>
              <Act
                call={scheduleUpdate}
                input={{ id: s.id, paused: s.state !== "paused" }}
                done={(o) => {
                  again();
                  return o.state === "paused" ? "Paused." : "It goes on, for you.";
                }}
              >
                {s.state === "paused" ? "Resume" : "Pause"}
              </Act>
              <button type="button" {...gate(scheduleUpdate, () => set(s))}>
                Edit
              </button>
              <Act
                call={scheduleDelete}
                input={{ id: s.id }}
                confirm={`Delete ${s.title}? What it has filed stays.`}
                done={() => {
                  again();
                  return "Deleted.";
                }}
              >
                Delete
              </Act>
            </div>
          </>
        )}
      />
      {open && (
        <Edit
          of={open === "new" ? undefined : open}
          close={() => {
            set(undefined);
            again();
          }}
        />
      )}
    </>
  );
}

function Edit(p: { of: Schedule | undefined; close: () => void }) {
  const s = p.of,
    repos = useRepos();
  const fields = (wrong: (f: string) => string[] | undefined) => (
    <>
      <Text name="title" label="Title" wrong={wrong} value={s?.title} focus />
      <Text name="body" label="What is wanted, and why" wrong={wrong} rows={5} value={s?.body} />
      <Choice
        key={repos.value.value?.data.length}
        name="repo"
        label="Repository"
        wrong={wrong}
        value={s?.repo ?? ""}
        all={[
          ["", "triage picks one"],
          ...[
            ...new Set([...(s?.repo ? [s.repo] : []), ...(repos.value.value?.data ?? []).map((r) => r.full_name)]),
          ].map((name) => [name, name] as const),
        ]}
      />
      <Text
        name="cron"
        label="When"
        hint="minute hour day month weekday"
        wrong={wrong}
        value={s?.cron ?? "0 9 * * 1"}
        code
      />
      <Text name="zone" label="Time zone" hint="empty: the account's" wrong={wrong} value={s?.zone} />
      <Choice
        name="busy"
        label="While the last is not done"
        wrong={wrong}
        field="when_busy"
        value={s?.when_busy ?? "queue"}
        all={[
          ["queue", "file it all the same"],
          ["skip", "skip it"],
        ]}
      />
    </>
  );
  const read = (f: FormData) => ({
    title: of(f, "title") ?? "",
    body: of(f, "body") ?? "",
    cron: of(f, "cron") ?? "",
    zone: of(f, "zone"),
    when_busy: of(f, "busy") as "queue",
  });
  return (
    <Dialog title={s ? "Schedule" : "New schedule"} class="wide" close={p.close}>
      {s ? (
        <>
          <p class="dim">It files for whoever changed it last: you, from now on.</p>
          <Form
            call={scheduleUpdate}
            submit="Save"
            said="Saved."
            keep
            done={p.close}
            read={(f) => ({ ...read(f), id: s.id, repo: String(f.get("repo") ?? "") })}
          >
            {fields}
          </Form>
        </>
      ) : (
        <Form
          call={scheduleCreate}
          submit="Make it"
          said="Made."
          keep
          done={p.close}
          read={(f) => ({ ...read(f), repo: of(f, "repo"), paused: f.has("paused") })}
        >
          {(wrong) => (
            <>
              {fields(wrong)}
              <Switch name="paused">Paused, until it is resumed</Switch>
            </>
          )}
        </Form>
      )}
    </Dialog>
  );
}
