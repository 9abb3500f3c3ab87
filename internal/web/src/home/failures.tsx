// What went wrong and is not mended: boxes, webhooks, repairs and tasks.
import { taskRedispatch, webhookRevive, type PullRequest } from "../client.gen";
import { Arm } from "../cards/arm";
import { can } from "../cards/can";
import { Hold } from "../cards/hold";
import type { List } from "../list";
import { inert } from "../ui/ansi";
import { Act, More, Trouble } from "../ui/parts";
import { Status } from "../ui/status";
import { Time } from "../ui/time";
import { TaskCard } from "./task";
import { deadOf, goneOf, pullsOf, rowsOf, stuckOf, type Wrong } from "./wrong";

export function WentWrong(p: { of: Wrong; above: ReadonlySet<string> }) {
  const w = p.of,
    ended = rowsOf(w.ended),
    stuck = stuckOf(w, p.above),
    pulls = pullsOf(w, p.above),
    gone = goneOf(w),
    dead = deadOf(w);
  const lists = [w.ended, w.stuck, w.pulls] as List<any>[],
    failed = lists.find((l) => l.state.value === "failed");
  const none = ended.length + stuck.length + pulls.length + gone.length + dead.length === 0,
    loading = lists.some((l) => l.state.value === "loading");
  if (!failed && (none || loading)) return null; // the figure says so
  return (
    <>
      <h2 id="wrong">Went wrong</h2>
      {failed ? (
        <Trouble error={new Error(failed.error.value)} again={() => void failed.load()} />
      ) : (
        <ul class="cards">
          {gone.map((b) => (
            <li key={b.id} class="item">
              <div>
                <p>
                  Box{" "}
                  <strong>
                    <a href={"/ui/boxes/" + b.id}>{inert(b.name)}</a>
                  </strong>
                </p>
                <p class="dim">
                  It was heard last <Time at={b.presence.last_beat} />. It takes work when it is back.
                </p>
              </div>
              <div class="acts">
                <Status of="offline" />
                <a class="button" href={"/ui/boxes/" + b.id}>
                  See the box
                </a>
              </div>
            </li>
          ))}
          {dead.map((h) => (
            <li key={h.id} class="item">
              <div>
                <p>
                  Webhook{" "}
                  <strong>
                    <a href={"/ui/settings/webhooks"}>{inert(h.name || h.url)}</a>
                  </strong>
                </p>
                <p class="dim">
                  Its receiver has refused every try. Nothing is sent to it any more, since{" "}
                  <Time at={h.unhealthy_at} suffix={false} />.
                </p>
              </div>
              <div class="acts">
                <Status of="exhausted" />
                <Act
                  call={webhookRevive}
                  input={{ id: h.id }}
                  done={() => {
                    void w.hooks.load();
                    return "It is sent to again.";
                  }}
                >
                  Send again
                </Act>
              </div>
            </li>
          ))}
          {pulls.map((r) => (
            <Spent key={r.id} of={r} />
          ))}
          {stuck.map((t) => (
            <TaskCard key={t.id} of={t}>
              {t.holds.map((h) => (
                <Hold key={h.reason} of={h} />
              ))}
              <div class="acts">
                <Status of={t.status} />
                {!t.holds.some((h) => h.clear) && (
                  <Act call={taskRedispatch} input={{ id: t.id }} done="Queued again.">
                    Try again
                  </Act>
                )}
              </div>
            </TaskCard>
          ))}
          {ended.map((t) => (
            <TaskCard key={t.id} of={t}>
              <div class="acts">
                <Status of={t.status} />
                {can(t).redispatch ? (
                  <Act call={taskRedispatch} input={{ id: t.id }} done="Queued again.">
                    Try again
                  </Act>
                ) : (
                  <a class="button" href={`/ui/tasks/${t.id}?tab=graph`}>
                    See what it depends on
                  </a>
                )}
              </div>
            </TaskCard>
          ))}
        </ul>
      )}
      <More of={[w.boxes, w.stuck].find((l) => l.more) ?? w.ended} />
    </>
  );
}

function Spent(p: { of: PullRequest }) {
  const r = p.of,
    b = r.babysit;
  return (
    <li class="item tall">
      <div>
        <p>
          <strong>
            <a href={"/ui/prs/" + r.id}>{inert(r.title)}</a>
          </strong>
        </p>
        <p class="dim">
          {r.repo}#{r.number} · the rounds of its repair are spent: {b.ci_rounds_used} of {b.ci_rounds_max} for checks,{" "}
          {b.conflict_rounds_used} of {b.conflict_rounds_max} for conflicts, {b.review_rounds_used} of{" "}
          {b.review_rounds_max} for reviews, {b.request_rounds_used} of {b.request_rounds_max} for requests
        </p>
      </div>
      <Arm id={r.id} />
    </li>
  );
}
