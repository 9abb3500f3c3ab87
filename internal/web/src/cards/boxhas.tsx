// What a box says that it has: its agents and sandboxes, and whether it is closed to others.
import type { Box } from "../client.gen";
import { inert } from "../ui/ansi";
import { Empty } from "../ui/parts";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";

export function Has(p: { of: Box }) {
  const b = p.of;
  return (
    <>
      <h2>What it has</h2>
      {b.isolation.length + b.capabilities.length === 0 ? (
        <Empty>It has not said yet.</Empty>
      ) : (
        <div class="scroll" tabIndex={0}>
          <table class="bars narrows">
            <caption class="dim">Coding agents and sandboxes, as the box found them</caption>
            <tbody>
              {b.capabilities.map((a) => (
                <tr key={a.name}>
                  <th scope="row">{inert(a.name)}</th>
                  <td>{inert(a.version)}</td>
                  <td>
                    {a.missing ? (
                      <>
                        <Status of="off" say="missing" /> {inert(a.missing)}
                      </>
                    ) : (
                      <Status of="passed" say="usable" />
                    )}
                  </td>
                </tr>
              ))}
              {b.isolation.map((l) => (
                <tr key={l}>
                  <th scope="row">isolation: {l}</th>
                  <td colSpan={2}>
                    {b.isolation_holds[l]?.length
                      ? "holds " + b.isolation_holds[l]!.map((h) => words(inert(h))).join(", ")
                      : "not tried"}
                  </td>
                </tr>
              ))}
              {Object.entries(b.labels).map(([k, v]) => (
                <tr key={k}>
                  <th scope="row">label: {inert(k)}</th>
                  <td colSpan={2}>{inert(v)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {b.hardening && (
        <>
          <h2>Firewall</h2>
          <p>
            <Status of={b.hardening.firewall === "active" ? "passed" : "stale"} say={b.hardening.firewall} />{" "}
            <span class="dim">
              told <Time at={b.hardening.reported_at} />
            </span>
          </p>
          {b.hardening.exposed_ports.length > 0 && (
            <p>Open to others: {b.hardening.exposed_ports.map((x) => `${x.port}/${x.protocol}`).join(", ")}</p>
          )}
          {b.hardening.findings.map((f, i) => (
            <p key={i}>{inert(f)}</p>
          ))}
        </>
      )}
    </>
  );
}
