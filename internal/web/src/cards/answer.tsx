// A question about a repository: the answer, each sentence with the lines that it rests on.
import { useState } from "preact/hooks";
import {
  projectAnswers,
  projectAsk,
  type AnswerCitationMove,
  type KeptAnswer,
  type Repository,
  type RepositoryAnswer,
} from "../client.gen";
import { useList } from "../list";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { Cards, of, Text } from "../ui/inputs";
import { Time } from "../ui/time";
import { hrefOfFile, Source } from "./source";

export function Ask(p: { at: { owner: string; repo: string }; repo: Repository }) {
  const [a, set] = useState<RepositoryAnswer | null>(null);
  return (
    <>
      <p class="dim">
        A model reads lines of the default branch and answers from them. What its lines do not bear out is left out:
        there may be no answer.
      </p>
      <Form
        call={projectAsk}
        read={(f) => ({ ...p.at, question: of(f, "question") ?? "" })}
        submit="Ask"
        done={set}
        keep
      >
        {(wrong) => (
          <Text
            name="question"
            label="Question"
            hint="name a file, a setting or a function as the code does"
            rows={2}
            need
            wrong={wrong}
          />
        )}
      </Form>
      <div aria-live="polite">{a && <Answer repo={p.repo} of={a} />}</div>
      <Earlier key={a?.session_id ?? ""} at={p.at} repo={p.repo} />
    </>
  );
}

// Earlier are the answers that one was given before, with where their lines are by now.
function Earlier(p: { at: { owner: string; repo: string }; repo: Repository }) {
  const list = useList<KeptAnswer>("answers", (cursor, signal) => projectAnswers({ ...p.at, cursor }, { signal }));
  if (list.ids.value.length === 0) return null;
  return (
    <>
      <h2>What you asked before</h2>
      <Cards
        list={list}
        label="What you asked before"
        empty=""
        row={(k) => (
          <details>
            <summary>
              {inert(k.question)} <span class="dim">· </span>
              <Time at={k.asked_at} />
              {k.stale && <span class="hold"> Lines of it have changed: ask again.</span>}
            </summary>
            <Answer repo={p.repo} of={k.answer} now={k.now} />
          </details>
        )}
      />
    </>
  );
}

// moved says where lines are that an answer cites.
function moved(m: AnswerCitationMove | undefined): string {
  if (m?.state === "moved") return " · now at " + inert(m.cite ?? "");
  if (m?.state === "stale") return " · stale: this text is not there any more";
  return m?.state === "unknown" ? " · whether it is still there is not known" : "";
}

function Answer(p: { repo: Repository; of: RepositoryAnswer; now?: AnswerCitationMove[] }) {
  const a = p.of;
  return (
    <>
      {a.refused ? (
        <p class="hold">{inert(a.reason ?? "")}</p>
      ) : (
        <>
          <h2>Answer</h2>
          <ul class="cards">
            {a.claims.map((c, i) => (
              <li key={i} class="item tall">
                <p>{inert(c.text)}</p>
                {c.citations.map((n) => {
                  const cited = a.citations[n - 1];
                  return (
                    cited && (
                      <figure key={n}>
                        <figcaption class="dim">
                          <Source
                            name={cited.cite}
                            href={hrefOfFile(p.repo, cited.commit, cited.path, cited.line, cited.end_line)}
                          />
                          {moved(p.now?.[n - 1])}
                        </figcaption>
                        <pre tabIndex={0}>{inert(cited.text)}</pre>
                      </figure>
                    )
                  );
                })}
              </li>
            ))}
          </ul>
        </>
      )}
      <p class="dim">
        {a.commit && (
          <>
            At commit <code>{a.commit.slice(0, 10)}</code>.{" "}
          </>
        )}
        {a.dropped > 0 && `${a.dropped} ${a.dropped === 1 ? "sentence was" : "sentences were"} left out. `}
        {a.partial && "The repository is so large that not all of it was looked through. "}
        {!a.refused && "The lines have these names and numbers; whether they mean the same, read them. "}
        {a.session_id && <a href={"/ui/sessions/" + a.session_id}>What was said</a>}
      </p>
    </>
  );
}
