// Account: the time zone, the floors that policy files are held to, who may file plans.
import {
  accountFloorsGet,
  accountFloorsSet,
  accountQuota,
  accountZoneGet,
  accountZoneSet,
  planFileSwitchGet,
  planFileSwitchSet,
} from "../../client.gen";
import { DeleteAccount } from "../../cards/deletion";
import { useOne } from "../../list";
import { me } from "../../session";
import { Form } from "../../ui/form";
import { Choice, lines, number, of, Switch, Text } from "../../ui/inputs";
import { bytes } from "../../ui/every";
import { Act, Coming, Fact, Facts, Head } from "../../ui/parts";
import { Status, words } from "../../ui/status";
import { Time } from "../../ui/time";

const amount = (name: string, n: number) => (name.endsWith("_bytes") ? bytes(n) : n.toLocaleString("en"));

export default function Account() {
  const zone = useOne("zone", (signal) => accountZoneGet({}, { signal })),
    quota = useOne("quota", (signal) => accountQuota({}, { signal })),
    floors = useOne("floors", (signal) => accountFloorsGet({}, { signal })),
    plans = useOne("plans", (signal) => planFileSwitchGet({}, { signal }));
  const f = floors.value.value,
    p = plans.value.value;
  return (
    <>
      <Head title="Account">
        <span class="dim">
          {me.value?.account.login}, {words(me.value?.account.tier ?? "")}
        </span>
      </Head>
      <h2>Room</h2>
      <p class="dim">What has no room is refused. Who runs the server can raise it.</p>
      {quota.value.value ? (
        <Facts>
          {quota.value.value.things.map((x) => (
            <Fact key={x.name} name={words(x.name)}>
              {x.used !== null && amount(x.name, x.used) + " of "}
              {x.most === null ? "any number" : amount(x.name, x.most)}
              {x.full && <Status of="failed" say="full" />}
            </Fact>
          ))}
        </Facts>
      ) : (
        <Coming of={quota} />
      )}
      <h2>Time zone</h2>
      <p class="dim">Digests are made at 08:00 there, and schedules that name no zone are in it.</p>
      {zone.value.value ? (
        <Form call={accountZoneSet} submit="Set" said="Set." keep read={(x) => ({ zone: of(x, "zone") ?? "" })}>
          {(wrong) => (
            <Text name="zone" label="Zone" hint="such as Europe/Berlin" wrong={wrong} value={zone.value.value!.zone} />
          )}
        </Form>
      ) : (
        <Coming of={zone} />
      )}
      <h2>Floors</h2>
      <p class="dim">
        No policy file of the account may ask for more. One that does is held back to this, from the next decision on.
      </p>
      {f ? (
        <>
          {f.updated_at && (
            <p class="dim">
              Last changed <Time at={f.updated_at} />
            </p>
          )}
          <Form
            key={f.updated_at}
            call={accountFloorsSet}
            submit="Replace the floors"
            said="They hold from the next decision on."
            keep
            done={() => void floors.load()}
            read={(x) => ({
              isolation: (of(x, "isolation") ?? null) as "none" | null,
              merge_mode: (of(x, "merge") ?? null) as "ask" | null,
              task_usd: number(x, "task_usd") ?? null,
              run_usd: number(x, "run_usd") ?? null,
              egress: x.get("any") ? null : lines(x, "egress"),
              protected_paths: lines(x, "paths"),
              outside_boxes: !!x.get("outside"),
            })}
          >
            {(wrong) => (
              <>
                <Choice
                  name="isolation"
                  label="Isolation"
                  hint="the least"
                  wrong={wrong}
                  value={f.isolation}
                  all={[["", "no floor"], "none", "landlock", "bubblewrap"]}
                />
                <Choice
                  name="merge"
                  label="Merging"
                  hint="the most lenient"
                  wrong={wrong}
                  field="merge_mode"
                  value={f.merge_mode}
                  all={[
                    ["", "no floor"],
                    ["auto", "by itself"],
                    ["ask", "a person is asked"],
                    ["never", "never"],
                  ]}
                />
                <Text
                  name="task_usd"
                  label="A task may cost"
                  hint="USD; empty: no floor"
                  wrong={wrong}
                  value={f.task_usd}
                  decimal
                />
                <Text
                  name="run_usd"
                  label="A run may cost"
                  hint="USD; empty: no floor"
                  wrong={wrong}
                  value={f.run_usd}
                  decimal
                />
                <Switch name="any" on={f.egress === null}>
                  MCP servers may be at any host; otherwise only at these:
                </Switch>
                <Text
                  name="egress"
                  label="Hosts"
                  hint="one a line; *.example.com"
                  wrong={wrong}
                  rows={3}
                  code
                  value={f.egress?.join("\n")}
                />
                <Text
                  name="paths"
                  label="Protected paths"
                  hint="a person is always asked about them"
                  wrong={wrong}
                  field="protected_paths"
                  rows={3}
                  code
                  value={f.protected_paths?.join("\n")}
                />
                <Switch name="outside" on={f.outside_boxes ?? false}>
                  Boxes of other accounts may take work that members who own them asked for. They see its code, secrets
                  and tokens; <a href="/ui/boxes">Boxes</a> lists each.
                </Switch>
              </>
            )}
          </Form>
        </>
      ) : (
        <Coming of={floors} />
      )}
      <h2>Plan documents</h2>
      {p ? (
        <p>
          <Status of={p.enabled ? "enabled" : "ended"} say={p.enabled ? "on" : "off"} /> Scouts{" "}
          {p.enabled ? "may" : "may not"} file plan documents into the account's repositories.{" "}
          <Act
            call={planFileSwitchSet}
            input={{ enabled: !p.enabled }}
            done={() => {
              void plans.load();
              return "Set.";
            }}
          >
            {p.enabled ? "Forbid it" : "Allow it"}
          </Act>
        </p>
      ) : (
        <Coming of={plans} />
      )}
      <DeleteAccount />
    </>
  );
}
