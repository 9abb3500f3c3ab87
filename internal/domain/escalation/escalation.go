// Package escalation is the questions that the platform puts to people. Work
// that no agent should decide about ends here: an ask that triage hands over, a
// task whose caller was unsure, a pull request whose rounds are spent. No agent
// is ever given an escalation; a person resolves it.
package escalation

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/leak"
	"yardmaster/internal/policy"
)

// Escalation is a question to a person.
type Escalation struct {
	ID         string     `json:"id"`
	Repo       *string    `json:"repo" doc:"owner/name"`
	Category   string     `json:"category"`
	Title      string     `json:"title"`
	Body       string     `json:"body"`
	Reason     string     `json:"reason" doc:"why a person is asked"`
	AskID      *string    `json:"ask_id"`
	CreatedBy  string     `json:"created_by"`
	CreatedAt  time.Time  `json:"created_at"`
	ResolvedAt *time.Time `json:"resolved_at" doc:"null while it is open"`
	ResolvedBy *string    `json:"resolved_by"`
	Note       *string    `json:"note" doc:"what whoever resolved it wrote"`
}

// Service answers for the escalations.
type Service struct{ DB *db.DB }

// Raised is the kind of the event that an escalation is told with.
const Raised = "issue.escalated"

// New is an escalation to be raised.
type New struct {
	RepoID                        *string // nil: it is about no one repository
	Category, Title, Body, Reason string
	AskID                         *string
	By                            string // who raises it; the actor of the transaction when empty
}

// Raise puts a question to the people of tx.Account, and tells of it.
func Raise(tx *db.Tx, n New) (escalationID string, err error) {
	escalationID = id.New()
	if n.By == "" {
		n.By = who(tx)
	}
	if _, err := insert.Exec(tx, escalationID, tx.Account, n.RepoID, n.Category, n.Title, n.Body, n.Reason, n.AskID, n.By, tx.Now); err != nil {
		return "", err
	}
	r, err := byID.One(tx, tx.Account, escalationID)
	if err != nil {
		return "", err
	}
	told := event.Change{Kind: Raised, Object: escalationID, Data: raised{
		Repo: r.Repo, AskID: n.AskID, EscalationID: escalationID, Category: n.Category, Reason: leak.Scrub(n.Reason),
	}}
	if n.RepoID != nil {
		told.RepoID = *n.RepoID
	}
	return escalationID, event.Record(tx, told)
}

// raised is the data of the event.
type raised struct {
	Repo         *string `json:"repo"`
	IssueID      *string `json:"issue_id"`
	AskID        *string `json:"ask_id"`
	EscalationID string  `json:"escalation_id"`
	Category     string  `json:"category"`
	Reason       string  `json:"reason"`
	URL          *string `json:"url"` // there is no page of it yet
}

// ResolveOfAsk resolves what is open about an ask, of one category.
func ResolveOfAsk(tx *db.Tx, askID, category, note string) error {
	ids, err := resolveOfAsk.All(tx, tx.Account, askID, tx.Now, who(tx), note, category)
	for _, escalationID := range ids {
		if err == nil {
			err = event.Record(tx, event.Change{Kind: "escalation.resolved", Object: escalationID, Data: map[string]any{"ask_id": askID, "note": note}})
		}
	}
	return err
}

func who(tx *db.Tx) string {
	if actor := policy.From(tx.Context()); !actor.Anonymous() {
		return actor.Label()
	}
	return "system"
}
