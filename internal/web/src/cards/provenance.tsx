// What a merged pull request came of: the signed statement, whether a key has signed it, and
// where else it is kept.
import { useState } from "preact/hooks";
import { prProvenance, type ProvenanceCopy, type PullRequestProvenance } from "../client.gen";
import { Who } from "./who";
import { useOne } from "../list";
import { inert } from "../ui/ansi";
import { useEvery } from "../ui/every";
import { Field } from "../ui/form";
import { many, usd } from "../ui/money";
import { Code, Coming, copy, Empty, Fact, Facts, Id } from "../ui/parts";
import { type Statement, statementOf, verify } from "../ui/statement";
import { Status, words } from "../ui/status";
import { Time } from "../ui/time";

export function Provenance(p: { pr: string }) {
  const one = useOne<PullRequestProvenance>("provenance " + p.pr, (signal) => prProvenance({ id: p.pr }, { signal })),
    v = one.value.value;
  useEvery(5, () => {
    if (v && v.state !== "none" && [v.state, v.artifact.state, v.note.state].includes("due")) void one.load();
  }, [one, v]);
  if (!v) return <Coming of={one} />;
  if (v.state === "none") return <Empty>It has no statement: it is not merged, or was before they were made.</Empty>;
  if (!v.envelope) return <Empty>The statement is about to be signed.</Empty>;
  const s = statementOf(v.envelope);
  return (
    <>
      {s ? <Says of={s} /> : <Empty>This version of the dashboard cannot read it.</Empty>}
      <Places of={v} />
      <Verify of={v} />
    </>
  );
}

// Says is the statement in words.
function Says(p: { of: Statement }) {
  const m = p.of.predicate;
  return (
    <>
      <h2>What the merge came of</h2>
      <Facts>
        <Fact name="Commit">
          <Id of={p.of.subject[0]?.digest["gitCommit"] ?? ""} chars={10} />
        </Fact>
        <Fact name="Merges">
          <code>{m.pull_request.head_sha.slice(0, 10)}</code> into <code>{inert(m.pull_request.base_ref)}</code>
        </Fact>
        <Fact name="Decided">
          <Time at={m.merged_at} /> by {m.merged_by ? <Who of={m.merged_by} /> : "nobody knows whom"}
        </Fact>
        <Fact name="Asked by">
          {m.asked ? (
            <>
              <Who of={m.asked.requested_by ? "user:" + m.asked.requested_by : m.asked.created_by} />
              {m.asked.verdict && <small>, judged: {words(m.asked.verdict)}</small>}
            </>
          ) : (
            "it is the work of no task"
          )}
        </Fact>
        <Fact name="Checks">
          <Status of={m.checks.state} noun="checks" />{" "}
          {m.checks.reruns.length > 0 && <small>{many(m.checks.reruns.length, "job")} run again</small>}
        </Fact>
        <Fact name="Spend">
          {usd(m.spend.usd)}{" "}
          {m.spend.unpriced_calls > 0 && <small>{many(m.spend.unpriced_calls, "call")} without a price</small>}
        </Fact>
      </Facts>
      <ul class="cards" aria-label="Runs, reviews and approvals">
        {m.runs.map((r) => (
          <li key={r.id} class="item">
            <div>
              <p>
                <a href={"/ui/runs/" + r.id}>{words(r.kind)}</a> with {inert(r.template)}
              </p>
              <p class="dim">
                {inert(
                  [
                    [r.agent, r.agent_version].filter(Boolean).join(" "),
                    r.models.join(", ") || "no model",
                    `isolation ${r.isolation ?? "not measured"}` +
                      (r.isolation_holds.length ? ` (held: ${r.isolation_holds.join(", ")})` : ""),
                    r.prompt_sha256 && `prompt ${r.prompt_sha256.slice(0, 12)}`,
                  ]
                    .filter(Boolean)
                    .join(" · "),
                )}{" "}
                · box <Id of={r.box_id} />
              </p>
            </div>
            <span>{words(r.outcome ?? "unfinished")}</span>
          </li>
        ))}
        {m.reviews.map((r, i) => (
          <li key={"review" + i} class="item">
            <p>
              Review by {inert(r.template)} of <code>{r.head_sha.slice(0, 10)}</code>
            </p>
            <span>{words(r.verdict ?? r.state)}</span>
          </li>
        ))}
        {m.approvals.map((a, i) => (
          <li key={"approval" + i} class="item">
            <p>
              {words(a.kind)} of <code>{a.head_sha.slice(0, 10)}</code>, by{" "}
              {a.by ? <Who of={a.by} /> : "nobody knows whom"}
            </p>
            <span>
              {words(a.state)} <Time at={a.at} />
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

function Places(p: { of: PullRequestProvenance }) {
  const v = p.of,
    said = (c: ProvenanceCopy) => words(c.state) + (c.why ? `: ${inert(c.why)}` : "");
  return (
    <>
      <h2>Where it is kept</h2>
      <Facts>
        <Fact name="Signed">
          <Time at={v.signed_at} />
        </Fact>
        <Fact name="Artifact">
          {v.artifact.id && v.artifact.state === "stored" ? (
            <a href={"/ui/artifacts/" + v.artifact.id}>stored</a>
          ) : (
            said(v.artifact)
          )}
        </Fact>
        <Fact name="Note of git">{said(v.note)}</Fact>
        <Fact name="Account's key">
          <Id of={v.public_key} chars={43} />
        </Fact>
      </Facts>
    </>
  );
}

// Verify checks the signature here, by a key that the person has noted, and tells how it is
// checked without this server.
function Verify(p: { of: PullRequestProvenance }) {
  const v = p.of,
    [key, setKey] = useState(""),
    [said, say] = useState<{ text: string; good: boolean }>();
  const check = async () => {
    try {
      const good = await verify(v.envelope!, key);
      say({
        good,
        text: good
          ? "This key has signed the statement, and nobody changed it since."
          : "No signature is by this key: the statement was changed, or signed by somebody else.",
      });
    } catch (e) {
      say({ good: false, text: e instanceof Error ? e.message : String(e) });
    }
  };
  return (
    <>
      <h2>Verify</h2>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          void check();
        }}
      >
        <Field label="Key that you noted" hint="not from here: who changes the statement changes that as well">
          {(id) => (
            <input
              id={id}
              value={key}
              spellcheck={false}
              autocomplete="off"
              onInput={(e) => setKey(e.currentTarget.value)}
            />
          )}
        </Field>
        <div class="acts">
          <button type="button" onClick={() => copy(v.envelope!)}>
            Copy the envelope
          </button>
          <button type="submit" disabled={!key.trim()}>
            Verify
          </button>
        </div>
      </form>
      {said && (
        <p class={said.good ? "hold" : "trouble"} role="status">
          {said.text}
        </p>
      )}
      <p class="dim">Without this server and this page, on the envelope as a file:</p>
      <Code
        text={`yardmaster provenance verify ${v.artifact.id ? `provenance-${v.merge_sha?.slice(0, 12)}` : "merge"}.dsse.json --key KEY --commit ${v.merge_sha}`}
      />
    </>
  );
}
