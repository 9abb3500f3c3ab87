// Package merge carries the merges of pull requests out: the question to a person before a
// merge, the order of a person or of the policy, and the merge at the code host. What happens
// next is decided by package moves, and what it needs of pull requests is the interface Pulls.
//
//   - question.go, decision.go: what is asked, and what is answered
//   - carry.go: decisions that a new head takes over
//   - orders.go: the queue of merges that are ordered
//   - apply.go, message.go: the merge
//   - queued.go: merges that wait in a queue
//   - made.go: what follows a merge, and its commit against the trial
//   - branch.go: branches that are not needed any more
package merge

import (
	"context"
	"log/slog"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/intent"
	"yardmaster/internal/domain/pull/facts"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/pull/trial"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
)

// Pulls is the part of pull requests that merges need.
type Pulls interface {
	// Move takes the next steps of a locked pull request whose facts have changed.
	Move(tx *db.Tx, pr *record.Pull) error
	// HostChanged records what a host says of a pull request.
	HostChanged(ctx context.Context, r repo.Ref, e codehost.PullChanged) error
}

// Checks is the part of checks that merges need.
type Checks interface {
	// Of answers the result of the check of a head of tx.Account; false if there was no check.
	Of(tx *db.Tx, prID, sha string) (record.Check, bool, error)
}

// People names the people and the agent behind a merge.
type People interface {
	// Signers answers the names for the merge commit of a task of tx.Account.
	// decidedBy is the label of the actor who decided about the merge.
	Signers(tx *db.Tx, taskID, decidedBy string) (Signers, error)
	// Same tells whether two labels may be of one person: what is not known may be.
	Same(tx *db.Tx, host, a, b string) (bool, error)
}

// Needs are the dependencies of Merger.
type Needs struct {
	DB      *db.DB
	Hub     *event.Hub
	Due     *due.Kernel
	Hosts   *codehost.Hosts
	BaseURL string // of the pages of pull requests
	Logger  *slog.Logger
	*facts.Reader
	*trial.Trials
	Checks  Checks
	People  People
	Queue   Queue
	Intents *intent.Service
	Bot     codehost.Person // signs the merge commits
	Pulls   Pulls
}

// Merger carries merges out.
type Merger struct {
	Needs
	orders due.Entries
}

// New makes a Merger of n. It panics if a required field of n is nil.
func New(n Needs) *Merger {
	needs.Whole(n)
	s := &Merger{Needs: n}
	s.orders = due.Register(n.Due, due.Queue[record.DueRow]{
		Name: "merges", AtOnce: 1, Retry: Retries, Load: loadOrder, Work: s.apply, GiveUp: s.GiveUp, Open: allOrders,
	})
	deleteAtHost.Handle(n.Intents, dropper{s})
	return s
}
