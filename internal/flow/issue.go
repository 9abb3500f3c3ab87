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
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/tracker"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// IssueAsks implements issue.Asks.
type IssueAsks struct{ Hub *event.Hub }

// File files the ask of an issue, once. A verdict about one that is not trusted has no
// rights: a judge may drop it, link it to open work, or ask a person.
func (a IssueAsks) File(tx *db.Tx, f issue.Filing) (string, bool, error) {
	person, _ := strings.CutPrefix(f.By, "user:")
	if person == f.By {
		person = ""
	}
	n := ask.Filing{
		RepoIDs: []string{f.RepoID}, Title: f.Title, Body: f.Body, Source: ask.FromIssue, DedupeKey: f.Key,
		Namespace: ask.FromIssue + ":" + f.RepoID, By: "system", RequestedBy: &person,
		Strangers: f.Strangers,
	}
	if f.Imported {
		n.Source, n.By = ask.FromBacklog, f.By
	}
	if f.Trusted {
		n.Scopes = policy.Scopes(policy.WriteTasks)
	}
	filed, existing, err := ask.File(tx, a.Hub, n)
	return filed.ID, existing, err
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

// CloseIssue closes the issue of an ask when all of its tasks are done, the last one by
// the merge of a pull request.
func CloseIssue(issues *issue.Service) func(*db.Tx, task.Move) error {
	return func(tx *db.Tx, m task.Move) error {
		t := m.Task
		if t.Status != task.Merged || t.AskID == nil || t.PRID == nil {
			return nil
		}
		return tx.As(t.AccountID, func() error {
			all, ok, err := ask.Tasks(tx, *t.AskID)
			if err != nil || !ok || !slices.Contains(all, t.ID) {
				return err
			}
			for _, other := range all {
				o, ok, err := task.Get(tx, tx.Account, other)
				if err != nil {
					return err
				}
				if other != t.ID && (!ok || o.Status != task.Merged && o.Status != task.Completed) {
					return nil
				}
			}
			found, err := pull.Briefs(tx, []string{*t.PRID})
			if err != nil {
				return err
			}
			pr, ok := found[*t.PRID]
			if !ok {
				return nil
			}
			return issues.Merged(tx, *t.AskID, t.RepoID, fmt.Sprintf("#%d", pr.Number), pr.URL)
		})
	}
}

// IssueSink implements task.Tracker.
type IssueSink struct {
	Hub   *event.Hub
	Hosts *codehost.Hosts
}

// Open asks the code host of a repository, or Linear, to open an issue; false if the host
// keeps none, or the account has not connected Linear.
func (s IssueSink) Open(tx *db.Tx, sink string, n task.NewIssue) (string, bool, error) {
	r, ok, err := repo.ByID(tx, n.RepoID)
	if err != nil || !ok {
		return "", false, err
	}
	if sink == task.SinkLinear {
		return tracker.Want(tx, s.Hub, r, n.Title, n.Problem, n.Labels)
	}
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil || !forge.Can(codehost.KeepIssues) {
		return "", false, nil //nolint:nilerr // a host that is not connected keeps nothing
	}
	issueID, err := issue.Request(tx, s.Hub, r, n.Title, n.Problem, n.Labels)
	return issueID, err == nil, err
}
