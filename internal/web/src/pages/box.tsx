// One box: what it is, what it runs now, what its agents are told, and how it goes.
import { useState } from "preact/hooks";
import {
  boxDecommission,
  boxDrain,
  boxGet,
  boxReissueCreds,
  boxRevoke,
  boxSetOwner,
  boxSetPrompt,
  memberList,
  taskList,
  type Box,
  type BoxRemoval,
  type Task,
} from "../client.gen";
import { BoxStatus, Owner, Slots } from "../cards/box";
import { Has } from "../cards/boxhas";
import { useList, useOne } from "../list";
import { go, type PageProps } from "../route";
import { inert } from "../ui/ansi";
import { Dialog } from "../ui/dialog";
import { bytes, useEvery } from "../ui/every";
import { Form } from "../ui/form";
import { Cards, Choice, number, of, Text } from "../ui/inputs";
import { usd } from "../ui/money";
import { Act, Coming, Fact, Facts, Head, Id } from "../ui/parts";
import { Raw } from "../ui/raw";
import { Status, words } from "../ui/status";
import { Time, Took } from "../ui/time";
import { tell } from "../ui/toast";

const works = (t: Task) => t.status === "running" || t.status === "claimed";

const owner = (id: string, v: string): Parameters<typeof boxSetOwner>[0] =>
  v === "org" || v === "shared" ? { id, target: v } : { id, target: "user", owner_id: v };

export default function BoxPage(p: PageProps) {
  const id = p.params.id!,
    [leaving, setLeaving] = useState(false);
  const one = useOne<Box>(id, (signal) => boxGet({ id }, { signal }), { topic: "runners", id });
  const members = useOne("members", (signal) => memberList({}, { signal }));
  const runs = useList<Task>(
    id + "runs",
    (cursor, signal) =>
      taskList({ cursor, filter: ["status:running,claimed", "box:" + id], per_page: 200 }, { signal }),
    { topic: "tasks", fits: (t) => t.box_id === id && works(t), drop: true },
  );
  useEvery(10, () => void one.load(), [one]);
  const b = one.value.value,
    team = members.value.value?.data ?? [];
  if (!b)
    return (
      <>
        <Head title="Box" />
        <Coming of={one} />
      </>
    );
  const gone = b.state === "revoked",
    away = b.state === "draining" || b.state === "drained",
    t = b.presence.telemetry;
  const again = () => {
    void one.load();
  };
  const ended = (o: BoxRemoval) => {
    again();
    return (
      o.detail ??
      `It is ${words(o.status)}. ${o.requeued} put back into the queue, ${o.handing_back} handed back by the box.`
    );
  };
  return (
    <>
      <Head title={inert(b.name || "Box")}>
        <BoxStatus of={b} />
        <span class="grow" />
        {!gone &&
          (away ? (
            <Act
              call={boxDrain}
              input={{ id, resume: true }}
              done={() => {
                again();
                return "It takes work again.";
              }}
            >
              Take work again
            </Act>
          ) : (
            <Act
              call={boxDrain}
              input={{ id }}
              confirm={`It takes no new work, and what it runs (${b.presence.active}) goes back into the queue, uncharged. It keeps its place and can be let in again.`}
              done={(o) => {
                again();
                return `It drains: ${o.requeued} put back, ${o.handing_back} handed back by the box.`;
              }}
            >
              Drain
            </Act>
          ))}
        {!gone && (
          <Act
            call={boxReissueCreds}
            input={{ id }}
            confirm="The box makes itself new keys when it next hears from the server. What it runs goes on."
            done="It was told to renew its credentials."
          >
            Renew credentials
          </Act>
        )}
        {!gone && (
          <button type="button" onClick={() => setLeaving(true)}>
            Decommission
          </button>
        )}
        {!gone && (
          <Act
            call={boxRevoke}
            input={{ id }}
            confirm={`Cut it off for good, at once? What it runs (${b.presence.active}) goes back into the queue and what was not saved there is lost. The machine has to be added anew.`}
            done={ended}
          >
            Revoke
          </Act>
        )}
      </Head>
      {b.presence.unfit && <p class="trouble">It takes no work: {inert(b.presence.unfit)}</p>}
      {b.revokes_at && !gone && (
        <p class="hold">
          It is being decommissioned: it hands back what it runs, and is cut off <Time at={b.revokes_at} />.
        </p>
      )}
      {gone && (
        <p class="trouble">
          It was cut off <Time at={b.revoked_at} />. To use the machine again, add it anew.
        </p>
      )}
      <Facts>
        <Fact name="Slots">
          <Slots of={b} />{" "}
          <span class="num">
            {b.presence.active} of {b.slots} busy
          </span>
        </Fact>
        <Fact name="Last seen">
          <Time at={b.presence.last_beat} />
        </Fact>
        <Fact name="Version">{inert(b.presence.version) || "–"}</Fact>
        <Fact name="System">{[b.os, b.arch].filter(Boolean).map(inert).join(", ") || "–"}</Fact>
        <Fact name="Works for">
          <Owner of={b} />
        </Fact>
        {t && (
          <>
            <Fact name="Disk free">{bytes(t.disk_free)}</Fact>
            <Fact name="Clock">
              <span class="num">{t.skew_ms} ms apart</span>
            </Fact>
            <Fact name="Waits to be sent">{bytes(t.spool_bytes)}</Fact>
            <Fact name="It says">{words(t.state)}</Fact>
          </>
        )}
        <Fact name="Added">
          <Time at={b.created_at} />
        </Fact>
        <Fact name="Id">
          <Id of={b.id} />
        </Fact>
      </Facts>
      <h2>Runs now</h2>
      <Cards
        list={runs}
        label="Runs now"
        empty={b.presence.active ? "It is at work on what you may not see." : "It runs nothing."}
        row={(x) => (
          <>
            <div>
              <p>
                <a href={"/ui/tasks/" + x.id}>
                  <strong>{inert(x.title)}</strong>
                </a>
              </p>
              <p class="dim">
                {x.repo} · attempt {x.attempt}
              </p>
            </div>
            <div class="acts">
              <Status of={x.status} />
              <Took from={x.started_at ?? x.claimed_at} to={null} />
              <span class="num">{usd(x.budget.spent)}</span>
            </div>
          </>
        )}
      />
      <Has of={b} />
      {!gone && (
        <>
          <h2>Briefing</h2>
          <p class="dim">Every agent on this box is told it, from the next run on.</p>
          <Form
            call={boxSetPrompt}
            submit="Save the briefing"
            said="Saved."
            keep
            read={(f) => ({ id, prompt: of(f, "prompt") ?? null })}
            done={again}
          >
            {(wrong) => (
              <Text name="prompt" label="Briefing" hint="empty: none" wrong={wrong} rows={4} value={b.briefing} />
            )}
          </Form>
          <h2>Whose work it takes</h2>
          <p class="dim">Somebody else is asked first, and agrees or declines under Settings, You.</p>
          <Form
            call={boxSetOwner}
            submit="Set"
            said="Set, or asked."
            keep
            done={again}
            read={(f) => owner(id, of(f, "owner") ?? "org")}
          >
            {(wrong) => (
              <Choice
                name="owner"
                label="Works for"
                wrong={(x) => wrong(x) ?? wrong("target") ?? wrong("owner_id")}
                value={b.owner.target === "user" ? b.owner.id : b.owner.target}
                all={[
                  ["org", "everything in this account"],
                  ...(b.owner.target === "user" && b.owner.id && !team.some((m) => m.user_id === b.owner.id)
                    ? [[b.owner.id, "only what one person asked for"] as const]
                    : []),
                  ...team.map((m) => [m.user_id, `only what ${inert(m.login)} asked for`] as const),
                  ["shared", "every account on this server (operators)"],
                ]}
              />
            )}
          </Form>
        </>
      )}
      {leaving && (
        <Dialog title="Decommission" close={() => setLeaving(false)}>
          <p>
            The box takes no new work. What it runs ({b.presence.active}) is saved and handed back, for as long as you
            give it; then it is cut off for good and leaves the list.
          </p>
          <Form
            call={boxDecommission}
            submit="Decommission"
            keep
            read={(f) => ({ id, grace_s: number(f, "grace_s") })}
            done={(o) => {
              setLeaving(false);
              tell(ended(o));
              if (o.state === "revoked") go("/ui/boxes");
            }}
          >
            {(wrong) => <Text name="grace_s" label="Seconds to hand back" wrong={wrong} value={600} decimal focus />}
          </Form>
        </Dialog>
      )}
      <Raw call={boxGet} input={{ id }} of={b} />
    </>
  );
}
