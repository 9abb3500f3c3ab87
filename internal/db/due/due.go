// Package due is the queue of everything that has to be done later: what a domain wants done
// outside of a transaction, again after a failure, or at a time.
//
// A domain keeps its row and adds an entry in the same transaction:
//
//	err := d.Write(ctx, func(tx *db.Tx) error {
//		... insert the domain's row ...
//		s.queue.Add(tx, guid, due.Entry{Account: account})
//		return nil
//	})
//
// A Kernel finds what is due in all queues with one statement, holds it for this node, and
// calls the queue's Work outside of any transaction. What comes of it is recorded, and the
// entry ended, in one transaction. If the node dies, or loses its hold, another one works
// again: Work must be fit to be repeated, and carries the same key each time.
//
// An entry says "look at this key", not "do this once". Adding a key that is there already
// changes nothing; adding one that is being worked on has it worked on once more. So the key
// of a line, such as a pull request, serves all that waits in the line: Load answers its
// head, and Next says whether there is another one.
//
// All nodes of a PostgreSQL go by the server's time, which each carries on by its monotonic
// clock: a node whose clock is wrong does no harm. On SQLite, and where db.Options has a
// clock, the time is that of the transactions.
//
//   - due.go: what a domain writes
//   - entries.go: the way into a queue
//   - kernel.go, clock.go: the loop of a node
//   - claim.go: what is taken, and of whom
//   - work.go: how an entry is carried out, and recorded
//   - guard.go: whether rows and entries agree
//   - store.go: the table and its statements
package due

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"yardmaster/internal/db"
)

// Queue is the due work of one kind. The service that owns it gives it to Register.
type Queue[Row any] struct {
	// Name is unique and is stored with each entry. The passes of its work are those of the
	// loop "due.NAME".
	Name string
	// Hold is how long a node has an entry before it renews. It renews at a third, and stops
	// the work at the end of a hold that it could not renew. 0: 30 s.
	Hold time.Duration
	// Retry says when a failed try is made again.
	Retry Ladder
	// AtOnce is how many entries a node works on at the same time. 0: 8.
	AtOnce int
	// Share is how many of them may be of one account. 0: all but one of AtOnce, so that an
	// account which floods the queue leaves room for the next one to come.
	Share int
	// Load reads the domain's row of a key, a second before the work at most. If the row is
	// gone, or needs nothing any more, it answers false, and the entry is dropped.
	Load func(tx *db.Tx, key string) (Row, bool, error)
	// Work does it, outside of a transaction. Its context ends when the node stops or loses
	// its hold. A panic is a failed try.
	Work func(ctx context.Context, j Job[Row]) Outcome
	// GiveUp records in the domain that there will be no further try: those of Retry are
	// spent, or nodes died of the entry. It runs in the transaction that ends the entry, in
	// which Entries.State still knows it. If it fails, or is nil, the entry is set aside with
	// its reason, until somebody calls Hurry.
	GiveUp func(tx *db.Tx, key string, why string) error
	// Open answers all rows that wait for work, for Kernel.Astray: at most so many, in any
	// order.
	Open func(tx *db.Tx, most int) ([]Open, error)
}

// Open is a row that waits for work.
type Open struct{ Key, Account string }

// Job is an entry that a node works on.
type Job[Row any] struct {
	Key     string
	Account string
	Tries   int // this one included; those that ended in Wait do not count
	Row     Row

	renew func(tx *db.Tx)
}

// Renew is for work that writes on its way: it renews the hold at the end of a transaction,
// which fails with ErrLost if the node does not have the entry any more.
func (j Job[Row]) Renew(tx *db.Tx) { j.renew(tx) }

// Ladder says how long to wait after a failed try: First, then Factor times as long each time
// up to Longest, and up to a quarter or a minute more, so that many that failed together do not
// come back together. The far side's own wish, see RetryAfter, counts if it is longer.
type Ladder struct {
	First, Longest time.Duration // 0: 1 s and 5 min
	Factor         int           // 0: 2
	Tries          int           // after so many the entry is given up; 0: never
}

// After is the shortest wait after so many tries, whatever the far side wishes.
func (l Ladder) After(tries int) time.Duration {
	d, longest := cmp.Or(l.First, time.Second), cmp.Or(l.Longest, 5*time.Minute)
	for ; tries > 1 && d < longest; tries-- {
		d *= time.Duration(cmp.Or(l.Factor, 2))
	}
	return min(d, longest)
}

// longestSpread is the most that is added to a wait: a limit of an hour is over after an hour.
const longestSpread = time.Minute

func (l Ladder) wait(tries int, asked time.Duration) time.Duration {
	d := max(l.After(tries), asked)
	return d + rand.N(min(d/4, longestSpread)+1)
}

// RetryAfter is an error of a far side that says when to come again.
type RetryAfter interface {
	error
	RetryAfter() time.Duration
}

// Later is err of a far side that wishes to be asked again after a time. It is a RetryAfter.
func Later(err error, after time.Duration) error { return later{err, after} }

type later struct {
	error
	after time.Duration
}

func (l later) RetryAfter() time.Duration { return l.after }
func (l later) Unwrap() error             { return l.error }

// Outcome is what came of a try.
type Outcome struct {
	kind   outcome
	after  time.Duration
	at     time.Time
	err    error
	record func(*db.Tx) (more bool, err error)
	decide func(*db.Tx) (Outcome, error)
}

type outcome int

const (
	done outcome = iota
	again
	waits
	failed
)

// Done ends the entry. record, which may be nil, runs in the same transaction: the outcome is
// recorded if and only if this node still has the entry. It may run more than once. What it
// does to the entry of the same key comes after the end: Add makes a new one.
func Done(record func(*db.Tx) error) Outcome { return Outcome{kind: done}.With(record) }

// Next is Done for the head of a line. record tells whether the line has more; then the key
// is worked on again at once. It has to look in its own transaction.
func Next(record func(*db.Tx) (more bool, err error)) Outcome {
	return Outcome{kind: done, record: record}
}

// Decide has the outcome found in the transaction that records it, for work that needs no
// more than the database. It may run more than once; an error is a failed try.
func Decide(decide func(*db.Tx) (Outcome, error)) Outcome { return Outcome{decide: decide} }

// Again has another try made, after the time that Retry says, or that err says if it is a
// RetryAfter. If the tries are spent, the entry is given up.
func Again(err error) Outcome { return Outcome{kind: again, err: err} }

// Wait has a look made after a time, or at once if the key was added meanwhile, and counts no
// try: nothing has failed.
func Wait(after time.Duration) Outcome { return Outcome{kind: waits, after: after} }

// WaitUntil is Wait for a time of the calendar, which does not move when a clock is set.
func WaitUntil(at time.Time) Outcome { return Outcome{kind: waits, at: at} }

// Failed gives the entry up at once: another try would fail in the same way.
func Failed(err error) Outcome { return Outcome{kind: failed, err: err} }

// With adds what is recorded in the transaction of any outcome, such as the error that a
// list shows. It runs before GiveUp.
func (o Outcome) With(record func(*db.Tx) error) Outcome {
	if o.record = nil; record != nil {
		o.record = func(tx *db.Tx) (bool, error) { return false, record(tx) }
	}
	return o
}

// ErrLost is the cause of the end of a job's context when the node does not have the entry
// any more: another one has it, or it was dropped.
var ErrLost = errors.New("due: the hold was lost")

// Entry is how a key is added. The zero value is due at once.
type Entry struct {
	// Account is whose share of the places the work takes. Load, what is recorded and GiveUp
	// have it as their Tx.Account. It may be empty.
	Account string
	// Rank orders accounts and keys: all that is due of a lower rank comes first. 0 to 9.
	Rank int
	// After is a wait, At a time of the calendar. At most one of them is set.
	After time.Duration
	At    time.Time
}

// States of an entry.
const (
	Waits = "waits" // until DueAt
	Ready = "ready" // for a node, since DueAt
	Held  = "held"  // by Holder, until DueAt unless it renews
	Aside = "aside" // nothing is done before somebody calls Hurry
)

// State is what is known of an entry, for lists and pages.
type State struct {
	State  string
	DueAt  time.Time
	Tries  int64
	Why    string // of the last failed try, 500 bytes at most
	Holder string // of a held one
}

func panicked(p any) error { return fmt.Errorf("panic: %v", p) }

// safely turns a panic into an error.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicked(p)
		}
	}()
	return f()
}

const maxWhy = 500 // bytes

// reason is the text of an error as it is stored.
func reason(err error) string {
	t := strings.ReplaceAll(strings.ToValidUTF8(err.Error(), "?"), "\x00", "?")
	return strings.ToValidUTF8(t[:min(len(t), maxWhy)], "")
}
