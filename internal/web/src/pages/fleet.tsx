// The fleet as a whole: what it does now, what waits for it, and which program its boxes run.
import { boxUtilization, boxVersions, type FleetUtilization, type Release } from "../client.gen";
import { Grade } from "../cards/health";
import { Pins } from "../cards/pins";
import { RolloutLine, useRollout } from "../cards/rollout";
import { newest, UpdateButton, useReleases } from "../cards/updating";
import { useOne } from "../list";
import { inert } from "../ui/ansi";
import { bytes, useEvery } from "../ui/every";
import { Coming, Empty, Figure, Head, Meter } from "../ui/parts";
import { ofAll } from "../ui/rate";
import { Time } from "../ui/time";

export default function Fleet() {
  const rollout = useRollout(),
    offered = useReleases(),
    releases = offered.value.value?.data ?? [],
    latest = newest(releases);
  const one = useOne("use", (signal) => boxUtilization({}, { signal }), { counts: ["runners"] }),
    versions = useOne("versions", (signal) => boxVersions({ per_page: 100 }, { signal }), { counts: ["runners"] }),
    u = one.value.value;
  useEvery(10, () => void one.load(), [one]);
  return (
    <>
      <Head title="The fleet">
        <a href="/ui/boxes">Boxes</a>
        <span class="grow" />
        <UpdateButton releases={releases} started={() => void rollout.load()} />
      </Head>
      {u ? <Use of={u} latest={latest} /> : <Coming of={one} />}
      <h2>Updates</h2>
      <RolloutLine of={rollout} whole />
      {versions.value.value && versions.value.value.data.length > 0 && (
        <p>
          {versions.value.value.data
            .map(
              (v) =>
                `${v.boxes} ${v.boxes === 1 ? "box runs" : "boxes run"} ${v.version ? inert(v.version) : "a program that has not reported"}` +
                (v.version && v.version === latest ? " (the newest)" : ""),
            )
            .join(", ")}
          .
        </p>
      )}
      {offered.value.value ? <Programs of={releases} /> : <Coming of={offered} />}
      <Pins channels={[...new Set(releases.map((r) => r.channel))]} />
    </>
  );
}

function Use(p: { of: FleetUtilization; latest: string | undefined }) {
  const u = p.of;
  return (
    <>
      <div class="figures">
        <Figure n={u.slots ? ofAll(u.active, u.slots) : "–"} name="slots busy" />
        <Figure n={u.backlog.pending} name="tasks in the queue" one="task in the queue" href="/ui/tasks?show=open" />
        <Figure n={u.backlog.ready} name="of them ready for a box" />
      </div>
      {u.more && <p class="dim">There is more than what is shown here.</p>}
      <h2>Boxes</h2>
      {u.boxes.length === 0 ? (
        <Empty>
          There is no box yet. <a href="/ui/boxes?add=1">Add one</a>
        </Empty>
      ) : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Use of boxes">
          <table class="full narrows">
            <thead>
              <tr>
                <th>Box</th>
                <th>Busy</th>
                <th>Free on its disk</th>
                <th>Program</th>
              </tr>
            </thead>
            <tbody>
              {u.boxes.map((b) => (
                <tr key={b.id}>
                  <td>
                    <p>
                      <a href={"/ui/boxes/" + b.id}>{inert(b.name)}</a>
                      {b.presence !== "online" && <small> · {b.presence}</small>}
                      {b.unfit && <small> · {inert(b.unfit)}</small>}
                    </p>
                  </td>
                  <td data-name="Busy">
                    <Meter full value={b.active} max={b.slots} label={ofAll(b.active, b.slots)} />
                  </td>
                  <td data-name="Free on its disk">{bytes(b.disk_free)}</td>
                  <td data-name="Program">
                    {inert(b.version) || "–"}
                    {b.version && p.latest && b.version !== p.latest && <small> · newest: {inert(p.latest)}</small>}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {u.keys.length > 0 && (
        <>
          <h2>Keys of models</h2>
          <ul class="cards">
            {u.keys.map((k) => (
              <li key={k.provider} class="item">
                <div>
                  <p>
                    <Grade of={k.status} say={k.provider} />
                  </p>
                  <p class="dim">
                    {k.keys} {k.keys === 1 ? "key" : "keys"}
                    {k.failing > 0 && `, ${k.failing} refused by the provider`}
                  </p>
                </div>
                <span class="num">
                  {k.d ? `${ofAll(k.n, k.d)} calls at once` : `${k.n} under way, how many it bears is not known`}
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
      {u.backlog.lanes.length > 0 && (
        <>
          <h2>What waits for a box</h2>
          <ul class="cards">
            {u.backlog.lanes.map((l) => (
              <li key={l.repo + l.template + l.priority} class="item">
                <p>
                  <a href={`/ui/tasks?filter=repo:${l.repo}&show=open`}>{inert(l.repo)}</a>{" "}
                  <span class="dim">
                    {l.template ? inert(l.template) : "checks"} · priority {l.priority}
                  </span>
                </p>
                <span class="num">
                  {l.depth}, the oldest <Time at={l.since} />
                </span>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

// Programs are the releases, one row for all the machines that it is built for.
function Programs(p: { of: Release[] }) {
  const rows = new Map<string, Release[]>();
  for (const r of p.of) rows.set(r.channel + " " + r.version, [...(rows.get(r.channel + " " + r.version) ?? []), r]);
  if (!rows.size) return <p class="dim">This server offers boxes no program: they are updated by hand.</p>;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Programs">
      <table class="full narrows">
        <thead>
          <tr>
            <th>Program</th>
            <th>Channel</th>
            <th>Built for</th>
            <th>Published</th>
          </tr>
        </thead>
        <tbody>
          {[...rows].map(([key, all]) => (
            <tr key={key}>
              <td>
                {inert(all[0]!.version)}
                {all[0]!.halted && <small> · halted: {inert(all[0]!.halted.why)}</small>}
              </td>
              <td data-name="Channel">{all[0]!.channel === "builtin" ? "the server's own" : inert(all[0]!.channel)}</td>
              <td class="dim" data-name="Built for">
                {all.map((r) => inert(r.target)).join(", ")}
              </td>
              <td data-name="Published">
                <Time at={all[0]!.published_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
