// A question about a repository: the answer, each sentence with the lines that it rests on.
import { useState } from "preact/hooks";
import { projectAsk, type RepositoryAnswer } from "../client.gen";
import { inert } from "../ui/ansi";
import { Form } from "../ui/form";
import { of, Text } from "../ui/inputs";

export function Ask(p: { at: { owner: string; repo: string } }) {
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
      <div aria-live="polite">{a && <Answer of={a} />}</div>
    </>
  );
}

function Answer(p: { of: RepositoryAnswer }) {
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
              <li key={i}>
                <p>{inert(c.text)}</p>
                {c.citations.map((n) => {
                  const cited = a.citations[n - 1];
                  return (
                    cited && (
                      <figure key={n}>
                        <figcaption class="dim">
                          <code>{inert(cited.cite)}</code>
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
