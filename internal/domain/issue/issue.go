// Package issue mirrors the issues of code hosts, and has those that the policy file
// chooses triaged.
//
//   - issue.go: states, Needs, New
//   - apply.go: what a host tells of an issue
//   - look.go: the first walk, asks that are to be filed, issues that are to be read again
//   - file.go: the ask of an issue, and what became of it
//   - handoff.go: hand-offs to webhooks, questions to people, and the way back to triage
//   - tell.go: comments, labels and new issues at the host, by intents
//   - ops.go, store.go, events.go
package issue

import (
	"log/slog"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/needs"
)

// State is the state of an issue.
type State string

// States of an issue.
const (
	Opening = "opening" // the host is yet to open it
	Open    = "open"
	Closed  = "closed"
	Refused = "refused" // the host did not open it
)

// Values lists all states.
func (State) Values() []string { return []string{Opening, Open, Closed, Refused} }

// Triage is what triage made of an issue.
type Triage string

// States of triage.
const (
	None      = "none"
	Filed     = "filed"   // there is an ask
	Triaged   = "triaged" // work came of the ask
	Dropped   = "dropped"
	Escalated = "escalated"
	HandedOff = "handed_off" // to a webhook
)

// Values lists all states.
func (Triage) Values() []string { return []string{None, Filed, Triaged, Dropped, Escalated, HandedOff} }

// Triages lists the states of triage.
func Triages() []string { return []string{None, Filed, Triaged, Dropped, Escalated, HandedOff} }

// Asks files asks in tx.Account.
type Asks interface {
	// File files an ask, or answers the one of its key.
	File(tx *db.Tx, f Filing) (askID string, existing bool, err error)
	// Lock locks an ask, which may be gone.
	Lock(tx *db.Tx, askID string) error
	// Decide ends the triage of an ask whose issue is decided about otherwise. An ask of
	// which work has come, or that was dropped, stays as it is.
	Decide(tx *db.Tx, askID string, d Decision) error
}

// Decision is what was decided about an issue, whatever triage may think.
type Decision struct {
	Reason string
	// Category and EscalationID are those of the question to a person; empty: nothing is
	// left to decide.
	Category, EscalationID string
}

// Filing is the ask of an issue.
type Filing struct {
	RepoID, Key, Title, Body string
	IssueID, URL             string
	// Trusted says that a verdict may begin work.
	Trusted bool
	// Strangers says that the text is of somebody who may not write to the repository,
	// whoever stands behind it.
	Strangers bool
	// Imported says that an operator asked for it, By is the operator's label.
	Imported bool
	By       string
}

// Webhooks are the webhooks of tx.Account.
type Webhooks interface {
	// TakesHandoff tells whether there is a webhook of the name, and what keeps it from
	// taking a hand-off.
	TakesHandoff(tx *db.Tx, name string) (there bool, obstacle Obstacle, err error)
}

// Obstacle is what keeps a webhook from taking a hand-off.
type Obstacle uint8

// The obstacles. A chosen list of events may leave hand-offs out.
const (
	NoObstacle Obstacle = iota
	OtherEvents
	NotHealthy
)

// Escalations puts questions to people.
type Escalations interface {
	// Raise puts a question about an issue of tx.Account to people.
	Raise(tx *db.Tx, q Question) (escalationID string, err error)
	// End resolves a question of tx.Account, unless it is resolved.
	End(tx *db.Tx, escalationID, note string) error
}

// Question is an issue that a person decides about.
type Question struct {
	RepoID, IssueID, Category, Title, Body, Reason string
	AskID, URL                                     *string
}

// Needs are the dependencies of Service.
type Needs struct {
	DB          *db.DB
	Due         *due.Kernel
	Hosts       *codehost.Hosts
	Logger      *slog.Logger
	Intents     *intent.Service
	Asks        Asks
	Webhooks    Webhooks
	Escalations Escalations
}

// Service answers for issues.
type Service struct {
	Needs
	issues, walks due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.issues = due.Register(n.Due, due.Queue[row]{
		Name: "issues", Retry: retry, Work: s.work,
		Load: func(tx *db.Tx, issueID string) (row, bool, error) {
			r, ok, err := byID.Maybe(tx, tx.Account, issueID)
			return r, ok && (r.Reading || r.Filing), err
		},
		Open: func(tx *db.Tx, most int) ([]due.Open, error) { return owed.All(tx, most) },
	})
	s.walks = due.Register(n.Due, due.Queue[string]{
		Name: "issue_walks", Retry: retry, Work: s.walk,
		Load: func(tx *db.Tx, repoID string) (string, bool, error) { return walkFrom.Maybe(tx, repoID) },
		Open: repo.Open(walking),
	})
	tellAtHost.Handle(n.Intents, teller{})
	openAtHost.Handle(n.Intents, opener{})
	return s
}
