// What runs would have pages of the knowledge base say, and the decision about it.
import { kbProposalDecide, kbProposalList, type KnowledgeProposal, type Repository } from "../client.gen";
import { Hunks, placeOf } from "./kb";
import { Actor } from "./who";
import { useList } from "../list";
import { inert } from "../ui/ansi";
import { useFresh } from "../ui/every";
import { Cards } from "../ui/inputs";
import { Act } from "../ui/parts";
import { Status } from "../ui/status";
import { Time } from "../ui/time";

// Proposals are those of a repository, the newest first.
export function Proposals(p: { repo: Repository }) {
  const list = useList<KnowledgeProposal>("proposals", (cursor, signal) =>
    kbProposalList({ repoId: p.repo.id, cursor, per_page: 25 }, { signal }),
  );
  useFresh(30, list);
  return (
    <Cards
      list={list}
      label="Proposals"
      empty="No run has proposed anything."
      row={(r) => <One repo={p.repo} of={r} again={() => void list.load()} />}
    />
  );
}

function One(p: { repo: Repository; of: KnowledgeProposal; again: () => void }) {
  const r = p.of,
    input = { repoId: p.repo.id, id: r.id },
    open = r.decided_at === null;
  return (
    <>
      <div>
        <p>
          <strong>
            {r.version > 0 ? <a href={placeOf(p.repo.full_name, r.slug)}>{r.slug}</a> : <code>{r.slug}</code>}
          </strong>{" "}
          <Status of={r.state} /> <span class="dim">{r.kind === "note" ? "a note for its end" : "its whole text"}</span>
        </p>
        <p>{inert(r.why)}</p>
        {r.hunks.length > 0 && <Hunks of={r.hunks} label={`What it changes in ${r.slug}`} />}
        {open && r.hunks.length === 0 && <p class="dim">It changes no line: the run says that the page still holds.</p>}
        {r.leaves_out.length > 0 && (
          <div class="hold">
            <p>It leaves out what people wrote:</p>
            <ul>
              {r.leaves_out.map((t, i) => (
                <li key={i}>{inert(t)}</li>
              ))}
            </ul>
          </div>
        )}
        <p class="dim">
          <a href={"/ui/runs/" + r.run_id}>A run</a>, <Time at={r.created_at} />
          {r.reason && <> · {inert(r.reason)}</>}
          {r.decided_by && <> · {r.decided_by === "system" ? "the judge" : <Actor of={r.decided_by} />}</>}
        </p>
      </div>
      {open && (
        <div class="acts">
          <Act
            call={kbProposalDecide}
            input={{ ...input, accept: true }}
            class="main"
            confirm={r.leaves_out.length > 0 ? "Take out what people wrote, as the proposal does?" : undefined}
            done={() => {
              p.again();
              return "It is in the page.";
            }}
          >
            Accept the text for {r.slug}
          </Act>
          <Act
            call={kbProposalDecide}
            input={{ ...input, accept: false }}
            done={() => {
              p.again();
              return "It is declined.";
            }}
          >
            Decline the text for {r.slug}
          </Act>
        </div>
      )}
    </>
  );
}
