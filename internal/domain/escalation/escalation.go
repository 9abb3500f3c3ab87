// Package escalation keeps the questions that the platform puts to people, about work
// that no agent should decide: an ask that triage hands over, a task whose caller was
// unsure, a pull request that no round has repaired. Agents never get an escalation;
// a person resolves it.
package escalation

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/needs"
	"yardmaster/internal/policy"
	"yardmaster/internal/secretscan"
)

// Escalation is a question to a person.
type Escalation struct {
	_          struct{}   `doc:"A question that the platform puts to people because no agent should decide it."`
	ID         string     `json:"id" format:"uuid" doc:"id of the escalation"`
	Repo       *string    `json:"repo" doc:"owner/name; null: it is about no one repository"`
	Category   string     `json:"category" example:"low_confidence" doc:"slug of what sort of question it is: low_confidence for a task that was not made, the reason of an escalated ask, or what is wrong with a pull request"`
	Title      string     `json:"title" doc:"one line"`
	Body       string     `json:"body" doc:"what it is about, as it was filed"`
	Reason     string     `json:"reason" example:"The caller was 30 % sure that this is worth doing." doc:"why a person is asked, in words"`
	AskID      *string    `json:"ask_id" format:"uuid" doc:"the ask it came from; null without one"`
	PRID       *string    `json:"pr_id" format:"uuid" doc:"the pull request it is about; null: none"`
	IssueID    *string    `json:"issue_id" format:"uuid" doc:"the issue of the code host it is about; null: none"`
	TaskID     *string    `json:"task_id" format:"uuid" doc:"the task it is about; null: none"`
	CreatedBy  string     `json:"created_by" example:"system" doc:"whose work led to it: user:<id>, pat:<id>, or system"`
	CreatedAt  time.Time  `json:"created_at" doc:"when it was raised"`
	ResolvedAt *time.Time `json:"resolved_at" example:"null" doc:"when a person had dealt with it; null while it is open"`
	ResolvedBy *string    `json:"resolved_by" example:"null" doc:"who said so: user:<id>, or system; policy: its cause has gone away; null while it is open"`
	Note       *string    `json:"note" example:"null" doc:"what whoever resolved it wrote"`
}

// Needs are the dependencies of Service.
type Needs struct{ DB *db.DB }

// Service lists and resolves escalations.
type Service struct{ Needs }

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}

// Draft is a new escalation.
type Draft struct {
	RepoID                        *string // nil: it is about no one repository
	Category, Title, Body, Reason string
	AskID, PRID, TaskID           *string
	IssueID                       *string // the issue of the code host that it is about
	URL                           *string // of a page about it; nil: none
	By                            string  // label of the actor; empty: the actor of the transaction
}

// Raise stores an escalation of tx.Account and records its event. It returns the error
// of the database.
func Raise(tx *db.Tx, n Draft) (escalationID string, err error) {
	escalationID = id.New()
	if n.By == "" {
		n.By = actorLabel(tx)
	}
	if _, err := insert.Exec(tx, insertArgs{
		ID: escalationID, AccountID: tx.Account, RepoID: n.RepoID, Category: n.Category, Title: n.Title, Body: n.Body,
		Reason: n.Reason, AskID: n.AskID, CreatedBy: n.By, CreatedAt: tx.Now, PRID: n.PRID, TaskID: n.TaskID, IssueID: n.IssueID,
	}); err != nil {
		return "", err
	}
	r, err := byID.One(tx, tx.Account, escalationID)
	if err != nil {
		return "", err
	}
	about := event.Subject{ID: escalationID}
	if n.RepoID != nil {
		about.RepoID = *n.RepoID
	}
	return escalationID, RaisedEvent.Record(tx, about, raisedData{
		AskID: n.AskID, IssueID: n.IssueID,
		Category: n.Category, EscalationID: escalationID, Reason: secretscan.Scrub(n.Reason), Repo: r.Repo, URL: n.URL,
	})
}

// End resolves an escalation of tx.Account, unless it is resolved, because what it asks is
// decided otherwise.
func End(tx *db.Tx, escalationID, note string) error {
	n, err := resolve.Exec(tx, resolveArgs{
		AccountID: tx.Account, ID: escalationID, ResolvedAt: tx.Now, ResolvedBy: actorLabel(tx), Note: &note,
	})
	if err != nil || n == 0 {
		return err
	}
	return ResolvedEvent.Record(tx, event.Subject{ID: escalationID}, resolvedData{Note: &note})
}

// ResolveOfAsk resolves the open escalations of one category about an ask.
func ResolveOfAsk(tx *db.Tx, askID, category, note string) error {
	ids, err := resolveOfAsk.All(tx, resolveOfAskArgs{
		AccountID: tx.Account, AskID: askID, ResolvedAt: tx.Now, ResolvedBy: actorLabel(tx), Note: note, Category: category,
	})
	for _, escalationID := range ids {
		if err == nil {
			err = ResolvedEvent.Record(tx, event.Subject{ID: escalationID}, resolvedData{AskID: &askID, Note: &note})
		}
	}
	return err
}

// IsOpenOfAsk tells whether people of tx.Account are still asked about an ask.
func IsOpenOfAsk(tx *db.Tx, askID string) (bool, error) { return openOfAsk.One(tx, tx.Account, askID) }

// ResolveOfPull resolves the open escalations about a pull request.
func ResolveOfPull(tx *db.Tx, prID, note string) error {
	ids, err := resolveOfPull.All(tx, resolveOfPullArgs{
		AccountID: tx.Account, PRID: prID, ResolvedAt: tx.Now, ResolvedBy: actorLabel(tx), Note: note,
	})
	for _, escalationID := range ids {
		if err == nil {
			err = ResolvedEvent.Record(tx, event.Subject{ID: escalationID}, resolvedData{Note: &note, PRID: &prID})
		}
	}
	return err
}

// About names escalations about a repository that are of no further use, and says why.
type About struct{ RepoID, Category, Title, Note string }

// byPolicy is who resolves an escalation whose cause has gone away.
const byPolicy = "policy"

// ResolveOfRepo resolves the open escalations of a category and title about a repository,
// because their cause has gone away.
func ResolveOfRepo(tx *db.Tx, a About) error {
	ids, err := resolveOfRepo.All(tx, resolveOfRepoArgs{
		AccountID: tx.Account, RepoID: a.RepoID, Category: a.Category, Title: a.Title,
		ResolvedAt: tx.Now, ResolvedBy: byPolicy, Note: a.Note,
	})
	for _, escalationID := range ids {
		if err == nil {
			err = ResolvedEvent.Record(tx, event.Subject{ID: escalationID, RepoID: a.RepoID}, resolvedData{Note: &a.Note})
		}
	}
	return err
}

// TitlesOfRepo lists the titles of the open escalations of a category about a repository of
// tx.Account, each once.
func TitlesOfRepo(tx *db.Tx, repoID, category string) ([]string, error) {
	return titlesOfRepo.All(tx, tx.Account, repoID, category)
}

// actorLabel is the label of the actor of tx, or system for none.
func actorLabel(tx *db.Tx) string {
	if actor := policy.From(tx.Context()); !actor.Anonymous() {
		return actor.Label()
	}
	return "system"
}
