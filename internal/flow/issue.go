package flow

import (
	"fmt"
	"slices"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/ask"
	"yardmaster/internal/domain/escalation"
	"yardmaster/internal/domain/issue"
	"yardmaster/internal/domain/plan"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/tracker"
	"yardmaster/internal/policy"
)

// IssueAsks implements issue.Asks.
type IssueAsks struct{}

// File files the ask of an issue, once. A verdict about one that is not trusted has no
// rights: a judge may drop it, link it to open work, or ask a person.
func (IssueAsks) File(tx *db.Tx, f issue.Filing) (string, bool, error) {
	person, _ := strings.CutPrefix(f.By, "user:")
	if person == f.By {
		person = ""
	}
	n := ask.Filing{
		RepoIDs: []string{f.RepoID}, Title: f.Title, Body: f.Body, Source: ask.FromIssue, DedupeKey: f.Key,
		Namespace: ask.FromIssue + ":" + f.RepoID, By: "system", RequestedBy: &person, IssueID: f.IssueID, IssueURL: f.URL,
		Strangers: f.Strangers,
	}
	if f.Imported {
		n.Source, n.By = ask.FromBacklog, f.By
	}
	if f.Trusted {
		n.Scopes = policy.Scopes(policy.WriteTasks)
	}
	filed, existing, err := ask.File(tx, n)
	return filed.ID, existing, err
}

// Lock locks an ask.
func (IssueAsks) Lock(tx *db.Tx, askID string) error { return ask.Lock(tx, askID) }

// Decide ends the triage of an ask whose issue is decided about otherwise.
func (IssueAsks) Decide(tx *db.Tx, askID string, d issue.Decision) error {
	return ask.Decide(tx, ask.Decision{AskID: askID, Reason: d.Reason, Category: d.Category, EscalationID: d.EscalationID})
}

// AskIssues implements ask.Issues.
type AskIssues struct{ Issues *issue.Service }

// ForAsk reads and locks an issue about which an ask is filed.
func (a AskIssues) ForAsk(tx *db.Tx, issueID string) (ask.Issue, error) {
	i, err := a.Issues.ForAsk(tx, issueID)
	return ask.Issue(i), err
}

// Follow has an issue follow a new ask.
func (a AskIssues) Follow(tx *db.Tx, issueID, askID string) error {
	return a.Issues.Follow(tx, issueID, askID)
}

// BacklogAsks implements backlog.Asks.
type BacklogAsks struct{ Issues *issue.Service }

// File files the ask of an issue, once, for the person that by names.
func (a BacklogAsks) File(tx *db.Tx, repoID, by string, i codehost.Issue, trusted bool) (bool, error) {
	return a.Issues.Import(tx, repoID, by, i, trusted)
}

// IssueEscalations implements issue.Escalations.
type IssueEscalations struct{}

// Raise puts a question about an issue of tx.Account to people.
func (IssueEscalations) Raise(tx *db.Tx, q issue.Question) (string, error) {
	return escalation.Raise(tx, escalation.Draft{
		RepoID: &q.RepoID, IssueID: &q.IssueID, Category: q.Category, Title: q.Title, Body: q.Body, Reason: q.Reason,
		AskID: q.AskID, URL: q.URL,
	})
}

// End resolves a question of tx.Account, unless it is resolved.
func (IssueEscalations) End(tx *db.Tx, escalationID, note string) error {
	return escalation.End(tx, escalationID, note)
}

// FollowAsk has the issue of an ask follow it.
func FollowAsk(issues *issue.Service) func(*db.Tx, ask.Settlement) error {
	states := map[ask.State]string{
		ask.Pending: issue.Filed, ask.Triaged: issue.Triaged, ask.Dropped: issue.Dropped, ask.Escalated: issue.Escalated,
	}
	return func(tx *db.Tx, a ask.Settlement) error {
		return issues.AskMoved(tx, issue.Outcome{
			AskID: a.AskID, Triage: states[a.State], EscalationID: a.EscalationID, Category: a.Category, Reason: a.Verdict.Reason,
			Tasks: len(a.Verdict.TaskIDs), Plan: a.Verdict.PlanID != nil,
		})
	}
}

// CloseIssue closes the issues whose asks are done with a task: those that it was made for,
// and those that it covers. All tasks of an ask have to be merged or completed, one of them
// by a pull request. FinishPlan sees to asks that became plans. Of an ask that triage has
// left to people, those are its tasks that name it.
func CloseIssue(issues *issue.Service) func(*db.Tx, task.Move) error {
	return func(tx *db.Tx, m task.Move) error {
		t := m.Task
		if t.Status != task.Merged && t.Status != task.Completed {
			return nil
		}
		return tx.As(t.AccountID, func() error {
			asks, err := ask.CoveredBy(tx, t.ID)
			if err != nil {
				return err
			}
			if t.AskID != nil && !slices.Contains(asks, *t.AskID) {
				asks = append(asks, *t.AskID)
			}
			for _, askID := range asks {
				all, byPeople, err := ask.Works(tx, askID)
				if err == nil && byPeople {
					all, err = task.OfAsk(tx, askID)
				}
				if err != nil {
					return err
				}
				if slices.Contains(all, t.ID) {
					if err := closeIssue(tx, issues, askID, byPeople, all, t); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
}

// FinishPlan closes the issue of a plan that is done.
func FinishPlan(issues *issue.Service) func(*db.Tx, plan.Finished) error {
	return func(tx *db.Tx, p plan.Finished) error {
		if p.AskID == nil {
			return nil
		}
		return closeIssue(tx, issues, *p.AskID, false, p.TaskIDs, nil)
	}
}

// closeIssue closes the issue of an ask if all tasks with the ids are done, one of them by a
// pull request. moved, unless nil, is one of them, of which the database may not tell yet.
func closeIssue(tx *db.Tx, issues *issue.Service, askID string, byPeople bool, taskIDs []string, moved *task.Row) error {
	var prs []string
	repos := map[string]string{} // by pull request
	for _, taskID := range taskIDs {
		t, ok, err := task.Get(tx, tx.Account, taskID)
		if err != nil {
			return err
		}
		if moved != nil && taskID == moved.ID {
			t, ok = *moved, true
		}
		switch {
		case !ok || t.Status != task.Merged && t.Status != task.Completed:
			return nil
		case t.Status == task.Merged && t.PRID != nil && repos[*t.PRID] == "":
			prs, repos[*t.PRID] = append(prs, *t.PRID), t.RepoID
		}
	}
	if len(prs) == 0 {
		return nil
	}
	found, err := record.Briefs(tx, prs)
	if err != nil {
		return err
	}
	var by []issue.Done
	for _, prID := range prs {
		if pr, ok := found[prID]; ok {
			by = append(by, issue.Done{RepoID: repos[prID], Number: fmt.Sprintf("#%d", pr.Number), URL: pr.URL})
		}
	}
	if len(by) == 0 {
		return nil
	}
	return issues.Merged(tx, askID, byPeople, by)
}

// IssueSink implements task.Tracker.
type IssueSink struct {
	Linear *tracker.Service
	Hosts  *codehost.Hosts
}

// Open asks the code host of a repository, or Linear, to open an issue; false if the host
// keeps none, or the account has not connected Linear.
func (s IssueSink) Open(tx *db.Tx, sink task.Sink, n task.NewIssue) (string, bool, error) {
	r, ok, err := repo.ByID(tx, n.RepoID)
	if err != nil || !ok {
		return "", false, err
	}
	if sink == task.SinkLinear {
		return s.Linear.Want(tx, r, n.Title, n.Problem, n.Labels)
	}
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil || !forge.Can(codehost.KeepIssues) {
		return "", false, nil //nolint:nilerr // a host that is not connected keeps nothing
	}
	issueID, err := issue.Request(tx, r, n.Title, n.Problem, n.Labels)
	return issueID, err == nil, err
}
