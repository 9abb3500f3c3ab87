// Secrets: their names and how they are handed over. No value can be read back.
import { useState } from "preact/hooks";
import type { Call } from "../api";
import type { DeletedSecret, Secret, SecretPage } from "../client.gen";
import { useList } from "../list";
import { useFresh } from "../ui/every";
import { inert } from "../ui/ansi";
import { Who } from "./who";
import { Form } from "../ui/form";
import { Cards, Choice, lines, of, Text } from "../ui/inputs";
import { Act } from "../ui/parts";
import { Time } from "../ui/time";

type At = { owner: string; repo: string };
type Keep = Partial<At> & {
  name: string;
  value: string;
  environment?: string;
  delivery?: "env" | "broker";
  hosts?: string[];
  header?: string;
  prefix?: string;
};
type Row = Secret & { id: string };

export function Secrets<P extends At | object>(p: {
  at: P;
  list: Call<P & { cursor?: string; per_page?: number }, SecretPage>;
  set: Call<any, Secret>;
  drop: Call<any, DeletedSecret>;
}) {
  const list = useList<Row>("secrets", async (cursor, signal) => {
    const page = await p.list({ ...p.at, cursor, per_page: 100 }, { signal });
    return { ...page, data: page.data.map((s) => ({ ...s, id: s.name + "\n" + (s.environment ?? "") })) };
  });
  useFresh(30, list);
  const [broker, setBroker] = useState(false);
  return (
    <>
      <Cards
        list={list}
        label="Secrets"
        empty="There is no secret."
        row={(s) => (
          <>
            <div>
              <p>
                <code>{inert(s.name)}</code>
                {s.environment && (
                  <>
                    {" "}
                    <span class="dim">for {inert(s.environment)}</span>
                  </>
                )}
              </p>
              <p class="dim">
                {s.delivery === "env"
                  ? `in the environment of agents as ${s.variable ?? s.name}`
                  : `added by the box to requests to ${s.hosts.map(inert).join(", ")}; agents never have it`}{" "}
                · set <Time at={s.updated_at} />
                {s.updated_by && (
                  <>
                    {" "}
                    by <Who of={s.updated_by} />
                  </>
                )}
              </p>
            </div>
            <div class="acts">
              <Act
                call={p.drop}
                input={{ ...p.at, name: s.name, environment: s.environment ?? undefined }}
                confirm={`Delete ${s.name}? It cannot be read back first. Runs that go on keep what they were given.`}
                done={() => {
                  void list.load();
                  return "Deleted.";
                }}
              >
                Delete
              </Act>
            </div>
          </>
        )}
      />
      <h2>Set a secret</h2>
      <Form
        call={p.set}
        submit="Keep it"
        said="Kept. It cannot be read back."
        done={() => void list.load()}
        read={(f): Keep => ({
          ...p.at,
          name: of(f, "name") ?? "",
          value: String(f.get("value") ?? ""),
          environment: of(f, "environment"),
          delivery: broker ? "broker" : "env",
          ...(broker ? { hosts: lines(f, "hosts"), header: of(f, "header"), prefix: of(f, "prefix") } : {}),
        })}
      >
        {(wrong) => (
          <>
            <Text name="name" label="Name" hint="one that is there is replaced" wrong={wrong} need place="NPM_TOKEN" />
            <Text name="value" label="Value" hint="never shown again" wrong={wrong} type="password" need />
            <Choice
              name="delivery"
              label="Handed over"
              wrong={wrong}
              value={broker ? "broker" : "env"}
              all={[
                ["env", "in the environment of agents"],
                ["broker", "by the box, to named hosts; agents never have it"],
              ]}
              onPick={(v) => setBroker(v === "broker")}
            />
            {broker && (
              <>
                <Text
                  name="hosts"
                  label="Hosts"
                  hint="over https, and no others"
                  wrong={wrong}
                  place="api.example.com"
                />
                <Text name="header" label="Header" wrong={wrong} place="Authorization" />
                <Text name="prefix" label="Before the value" wrong={wrong} place="Bearer " />
              </>
            )}
            <Text
              name="environment"
              label="For the environment"
              hint="empty: every one"
              wrong={wrong}
              place="staging"
            />
          </>
        )}
      </Form>
    </>
  );
}
