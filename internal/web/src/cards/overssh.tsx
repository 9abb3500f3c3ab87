// A machine that the server is to enroll over SSH: what it has to let in, its host key, and how it went.
import { useState } from "preact/hooks";
import { boxAddSsh, boxSshJoins, boxSshKey, type BoxAddSshInput, type SSHJoin } from "../client.gen";
import { useOne } from "../list";
import { go } from "../route";
import { inert } from "../ui/ansi";
import { useEvery } from "../ui/every";
import { Form } from "../ui/form";
import { number, of, Text } from "../ui/inputs";
import { Act, Code, Coming } from "../ui/parts";

// place is what a person writes of a machine: user@host, and a port behind a colon.
function place(text: string): Pick<BoxAddSshInput, "host" | "user" | "port"> {
  const [, user = "", host = "", port] = /^([^@]*)@\[?(.*?)\]?(?::(\d+))?$/.exec(text) ?? [];
  return { user, host, port: port ? Number(port) : undefined };
}

export function OverSSH() {
  const [asked, setAsked] = useState<SSHJoin>();
  const key = useOne("ssh-key", (signal) => boxSshKey({}, { signal }));
  const line = key.value.value?.authorized_keys;
  if (asked) return <Going of={asked} asked={setAsked} />;
  return (
    <>
      <p>The server calls the machine and joins it. The machine has the program yardmaster on its PATH.</p>
      {line ? (
        <>
          <p class="dim">This line has to stand in ~/.ssh/authorized_keys of the user there:</p>
          <Code text={line} />
        </>
      ) : (
        <Coming of={key} />
      )}
      <Form
        call={boxAddSsh}
        submit="Call the machine"
        keep
        done={setAsked}
        read={(f) => ({
          ...place(of(f, "at") ?? ""),
          host_key: of(f, "host_key"),
          name: of(f, "name"),
          slots: number(f, "slots"),
        })}
      >
        {(wrong) => (
          <>
            <Text
              name="at"
              label="Machine"
              hint="user@host, or user@host:port"
              wrong={(x) => wrong(x) ?? wrong("host") ?? wrong("user") ?? wrong("port")}
              focus
            />
            <Text name="host_key" label="Host key" hint="empty: it is shown, and nothing is run" wrong={wrong} code />
            <Text name="name" label="Name" hint="empty: what the machine calls itself" wrong={wrong} />
            <Text name="slots" label="Runs at once" hint="empty: what it offers" wrong={wrong} decimal />
          </>
        )}
      </Form>
    </>
  );
}

// Going follows a call to its end.
function Going(p: { of: SSHJoin; asked: (j: SSHJoin) => void }) {
  const one = useOne(p.of.id, (signal) => boxSshJoins({ filter: ["id:" + p.of.id] }, { signal })),
    j = one.value.value?.data[0] ?? p.of,
    over = j.state === "joined" || j.state === "failed",
    seen = j.seen;
  const called = (o: SSHJoin) => {
    p.asked(o);
    return "It is called again.";
  };
  useEvery(over ? 600 : 1, () => void one.load(), [one, over]);
  return (
    <>
      {!over && (
        <p role="status" class="dim">
          The server calls {inert(j.user)}@{inert(j.host)}.
        </p>
      )}
      {j.state === "joined" && (
        <p role="status">
          It is a box now.{" "}
          <button type="button" class="main" onClick={() => go("/ui/boxes/" + j.box_id)}>
            Show it
          </button>
        </p>
      )}
      {j.state === "failed" && (
        <p role="alert" class={seen && !j.host_key ? "hold" : "trouble"}>
          {inert(j.detail ?? "")}
        </p>
      )}
      {j.output && <pre>{inert(j.output)}</pre>}
      {seen && (
        <>
          <p>The machine has this host key. On the machine, ssh-keygen -lf shows its own:</p>
          <Code text={seen.fingerprint} />
        </>
      )}
      {j.state === "failed" && (
        <p class="acts">
          {seen && (
            <Act call={boxAddSsh} input={again(j, seen.fingerprint)} done={called}>
              It is that key: join it
            </Act>
          )}
          {!seen && (
            <Act call={boxAddSsh} input={again(j, j.host_key)} done={called}>
              Call it again
            </Act>
          )}
        </p>
      )}
    </>
  );
}

const again = (j: SSHJoin, key: string | null): BoxAddSshInput => ({
  host: j.host,
  user: j.user,
  port: j.port,
  name: j.name || undefined,
  slots: j.slots ?? undefined,
  labels: j.labels,
  host_key: key ?? undefined,
});
