// Package babysit has agents repair the heads of pull requests, in rounds: after a failed check,
// for a conflict, and for what reviews and people ask for. Whether a round begins, and of which
// kind, is decided by package moves. What it needs of pull requests is the interface Pulls.
//
//   - round.go: a round, from what it is for to its end
//   - arm.go: new rounds, and rounds that people ask for
package babysit

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/facts"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
)

// Pulls is the part of pull requests that babysitting needs.
type Pulls interface {
	// Move takes the next steps of a locked pull request whose facts have changed.
	Move(tx *db.Tx, pr *record.Pull) error
	// Check has the head of a locked pull request checked, and moves the pull request on. It
	// fails with the fault of Checks.Queue.
	Check(tx *db.Tx, r repo.Ref, pr *record.Pull) error
}

// Tasks is the part of tasks that babysitting needs. All tasks are of tx.Account.
type Tasks interface {
	// Repair queues a task that repairs a head. It fails with a fault if the queue
	// does not take the task now.
	Repair(tx *db.Tx, r repo.Ref, round Round) (taskID string, err error)
}

// Checks is the part of checks that babysitting needs. All checks are of tx.Account.
type Checks interface {
	// Of answers the result of the check of a head; false if there was no check.
	Of(tx *db.Tx, prID, sha string) (record.Check, bool, error)
	// Queue queues the check of a repository for a head. It fails with a fault if
	// the queue does not take the check.
	Queue(tx *db.Tx, r repo.Ref, prID, sha string) error
	// Follow has the checks read that the host of a repository has of the head of a
	// pull request to a base, and HostChecked called with their result.
	Follow(tx *db.Tx, r repo.Ref, prID, base, sha string) error
	// AtHost answers what the host says of the failed checks of a head; false if none
	// has failed that can be repaired.
	AtHost(tx *db.Tx, repoID, sha string) (HostFailure, bool, error)
}

// HostFailure is what a host says of the failed checks of a head.
type HostFailure struct {
	Names []string // of the checks
	Log   string   // the end of the log of the first one; "" if the host keeps none
	// Repair are the failures, and Leave those that come and go. Both are from logs.
	Repair, Leave []string
}

// Reviews is the part of reviews that babysitting needs. All findings are of tx.Account.
type Reviews interface {
	// Round describes the findings that wait for an answer, for the agent that gives
	// it; "" if there is none.
	Round(tx *db.Tx, prID string) (string, error)
	// Posting answers since when a review is being posted at the host; false if none is.
	Posting(tx *db.Tx, repoID, prID string) (since time.Time, ok bool, err error)
}

// People names people.
type People interface {
	// Asker is the person for whom a task of tx.Account is done: the label, and the
	// login at a host if it is known.
	Asker(tx *db.Tx, taskID, host string) (label, login string, err error)
	// Name is what people call whoever a label names.
	Name(tx *db.Tx, label string) (string, error)
}

// Queue is the part of merge queues that babysitting needs.
type Queue interface {
	// Failure answers why a head was thrown out of its queue by its check, with the end of
	// the output; false if it was not.
	Failure(tx *db.Tx, prID, headSHA string) (why, log string, ok bool, err error)
}

// Needs are the dependencies of Sitter.
type Needs struct {
	Hub *event.Hub
	*facts.Reader
	Tasks   Tasks
	Checks  Checks
	Reviews Reviews
	People  People
	Queue   Queue
	Pulls   Pulls
}

// Sitter has heads repaired.
type Sitter struct{ Needs }

// New makes a Sitter of n. It panics if a required field of n is nil.
func New(n Needs) *Sitter {
	needs.Whole(n)
	return &Sitter{n}
}
