package ask

import (
	"errors"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
)

// What a person has decided about an issue ends the triage of its ask, also while a judge has
// it, and nobody gives that ask back to triage. An ask of which work has come stays.
func TestDecide(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		held := y.file(func(f *Filing) { f.IssueID, f.IssueURL = anIssue, "https://elsewhere/1" })
		y.judge.say = func(int, []string) (string, error) {
			y.write(func(tx *db.Tx) error { return Decide(tx, Decision{AskID: held, Reason: "It was handed off."}) })
			return mint("acme/web", nil), nil
		}
		y.pass()
		if a := y.want(held, Dropped, ""); a.Verdict.Reason != "It was handed off." || len(y.minted("acme")) != 0 {
			y.t.Errorf("a judge decides after all: %+v, %+v", a.Verdict, y.minted("acme"))
		}

		y.judge.refuse = fault.Reason("no-key", "The account has no key.")
		lone := y.file(nil)
		y.pass()
		y.want(lone, Escalated, JudgeUnavailable)
		y.write(func(tx *db.Tx) error {
			return Decide(tx, Decision{AskID: lone, Reason: "Legal has to say.", Category: "needs_decision", EscalationID: id.New()})
		})
		y.want(lone, Escalated, "needs_decision")
		ctx := policy.With(y.ctx(), policy.Actor{UserID: "ann", Scopes: filer})
		if _, err := y.redrive(ctx, idIn{AskID: lone}); fault.From(err).Slug != "not_redrivable" {
			y.t.Errorf("it goes back to triage: %v", err)
		}

		y.judge.refuse, y.judge.say = nil, always(mint("acme/web", nil))
		begun := y.file(nil)
		y.pass()
		y.want(begun, Triaged, "")
		y.write(func(tx *db.Tx) error { return Decide(tx, Decision{AskID: begun, Reason: "Too late."}) })
		y.want(begun, Triaged, "")
	})
}

// An ask about an issue is for its repository, the issue follows it, and what is asked of
// people about it names the issue.
func TestAskOfIssue(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		ctx := policy.With(y.ctx(), policy.Actor{UserID: "ann", Scopes: filer})
		in := fileIn{Title: "Mend it", Body: "It fails.", IssueID: anIssue, Repo: "acme/api"}
		y.issue = Issue{RepoID: "acme-web", Repo: "acme/web", URL: "https://elsewhere/1", Enabled: true}
		if _, err := y.fileOne(ctx, in); fault.From(err).Fields["repo"] == nil {
			y.t.Errorf("it is of another repository: %v", err)
		}
		in.Repo = ""
		y.issue.Enabled = false
		if _, err := y.fileOne(ctx, in); fault.From(err).Slug != "repo_disabled" {
			y.t.Errorf("its repository is off: %v", err)
		}
		y.issue.Enabled = true
		out, err := y.fileOne(ctx, in)
		if err != nil || out.Kind != "filed" || len(y.follow) != 1 || y.follow[0] != anIssue+" "+out.AskID {
			y.t.Fatalf("%+v, %v, follow %q", out, err, y.follow)
		}
		if a := y.ask(out.AskID); deref(a.Repo) != "acme/web" || deref(a.IssueID) != anIssue {
			y.t.Errorf("%+v", a)
		}
		y.issue.AskID = out.AskID
		if again, err := y.fileOne(ctx, in); err != nil || again.Kind != "existing" || again.AskID != out.AskID {
			y.t.Errorf("again: %+v, %v", again, err)
		}
		in.IssueID = id.New()
		if _, err := y.fileOne(ctx, in); !fault.IsKind(err, fault.NotFound) {
			y.t.Errorf("of an unknown issue: %v", err)
		}
		y.judge.say = always(says(object{"kind": "escalate", "reason": "Unclear.", "category": "unclear"}))
		y.pass()
		y.want(out.AskID, Escalated, "unclear")
		if got := one(y, raised, "acme", out.AskID); got.IssueID != anIssue || got.URL != "https://elsewhere/1" {
			y.t.Errorf("the question is about %+v", got)
		}
	})
}

// about is what the event of a question says that it is about.
type about struct {
	IssueID string
	URL     string `db:"url"`
}

var raised = db.Q[about](`SELECT e.issue_id, a.issue_url AS url FROM escalations e JOIN asks a ON a.id = e.ask_id
	WHERE e.account_id = $1 AND e.ask_id = $2`)

// What is linked to a task, or covered by one, is found by that task.
func TestCovered(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		taskID := y.existing("acme-web", "Open work")
		y.judge.say = always(says(object{"kind": "cross_link", "reason": "It is under way.", "task_ids": []string{taskID}}))
		linked := y.file(nil)
		y.pass()
		y.judge.say = always(says(object{"kind": "drop", "reason": "It is the same.", "covering_task_id": taskID}))
		dropped := y.file(nil)
		y.pass()
		y.want(dropped, Dropped, "")
		y.write(func(tx *db.Tx) error {
			asks, err1 := CoveredBy(tx, taskID)
			works, _, err2 := Works(tx, dropped)
			if len(asks) != 2 || len(works) != 1 || works[0] != taskID {
				y.t.Errorf("%q, and %q of those %s, %s", works, asks, linked, dropped)
			}
			return errors.Join(err1, err2)
		})
	})
}
