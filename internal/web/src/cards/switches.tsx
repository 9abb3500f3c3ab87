// The switches of a repository, its default branch, and what its account holds it to.
import { projectSettings, projectUpdate, type Repository } from "../client.gen";
import { Clamps, flat } from "./policy";
import { useOne } from "../list";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Text } from "../ui/inputs";
import { Act, Coming, Empty } from "../ui/parts";
import { Status, words } from "../ui/status";
import { tell } from "../ui/toast";

type At = { owner: string; repo: string };

// Branch is the form of the default branch, which the built-in host alone lets one choose.
function Branch(p: { at: At; of: Repository; changed: () => void }) {
  return (
    <>
      <h2>Default branch</h2>
      <p class="dim">Work begins from it and is merged into it, and its policy file is in force.</p>
      <Form
        key={p.of.default_branch}
        call={projectUpdate}
        read={(f) => ({ ...p.at, host: p.of.host, default_branch: String(f.get("default_branch") ?? "").trim() })}
        submit="Make it the default"
        done={(o) => {
          tell(`Work begins from ${o.default_branch} now.`);
          p.changed();
        }}
        keep
      >
        {(wrong) => (
          <Text
            name="default_branch"
            label="Default branch"
            hint="a branch that is there, such as main"
            value={p.of.default_branch}
            wrong={wrong}
          />
        )}
      </Form>
    </>
  );
}

export function Settings(p: { at: At; of: Repository; host: string; enabled: boolean; changed: () => void }) {
  const one = useOne("settings", (signal) => projectSettings(p.at, { signal })),
    s = one.value.value;
  if (!p.enabled)
    return (
      <Empty>
        It is off: its tasks wait, and new ones are refused. The other switches can be turned when it is enabled.
      </Empty>
    );
  if (!s) return <Coming of={one} />;
  return (
    <>
      <h2>Switches</h2>
      <ul class="cards">
        {s.switches.map((w) => (
          <li key={w.name} class="item">
            <div>
              <p>
                <strong>{words(w.name)}</strong> <Status of={w.on ? "enabled" : "ended"} say={w.on ? "on" : "off"} />
              </p>
              <p class="dim">{w.does}</p>
            </div>
            <div class="acts">
              <Act
                call={projectUpdate}
                input={{ ...p.at, host: p.host, [w.name]: !w.on }}
                confirm={w.name === "enabled" ? "Turn it off? Its tasks wait, and new ones are refused." : undefined}
                done={() => {
                  void one.load();
                  p.changed();
                  return `${words(w.name)} is ${w.on ? "off" : "on"}.`;
                }}
              >
                Turn {w.on ? "off" : "on"}
              </Act>
            </div>
          </li>
        ))}
      </ul>
      {p.host === "builtin" && <Branch at={p.at} of={p.of} changed={p.changed} />}
      <h2>What the account holds it to</h2>
      <div class="scroll" tabIndex={0}>
        <table class="bars">
          <tbody>
            {flat(s.floors).map(([k, v]) => (
              <tr key={k}>
                <th scope="row">{words(k)}</th>
                <td>{inert(v)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {s.policy.fallback && <p class="hold">{inert(s.policy.fallback)}</p>}
      <Clamps all={s.policy.clamped} />
    </>
  );
}
