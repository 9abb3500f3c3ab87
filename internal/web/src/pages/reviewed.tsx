// How a review is shown, wherever one is.
import type { ReviewRun } from "../client.gen";
import { inert } from "../ui/ansi";
import { Status, words } from "../ui/status";
import { table } from "../own";

const verdicts: Record<string, string> = table({ success: "approve", failure: "request_changes", neutral: "neutral" });
// verdict is the outcome of a review, or how far it is.
export const verdict = (r: ReviewRun) =>
  r.verdict ? (
    <Status
      of={verdicts[r.verdict] ?? r.verdict}
      say={
        r.verdict === "success" ? "nothing that holds it" : r.verdict === "failure" ? "holds the merge" : "no verdict"
      }
    />
  ) : (
    <Status of={r.status} say={words(r.status)} />
  );

// brain is the model that reviewed, the program of whose model nothing is known, or why there
// was none.
export const brain = (r: ReviewRun) =>
  r.brain.kind === "model"
    ? inert([r.brain.provider, r.brain.model].filter(Boolean).join(" "))
    : r.brain.kind === "unknown" && r.provenance?.agent === "command" && r.findings_kept !== null
      ? "a program of its own"
      : r.brain.gap === "no_credential"
        ? "no model key"
        : words(r.brain.gap ?? r.brain.kind);
