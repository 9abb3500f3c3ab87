// Package closure is how an account is deleted by its owner. An owner asks for it in a session that
// is freshly signed in; all owners and admins are told. For Needs.Wait any owner can take it back.
// Then a queue of package db/due carries it out, in steps that are each fit to be repeated: work under
// way is cancelled, subscriptions are ended at the provider of payments, boxes are revoked, the rows go
// in one transaction, and after them the files. No token and no run can ask for it.
//
//   - closure.go: types, Needs and the Service
//   - ops.go, events.go: capabilities, events
//   - work.go: how it is carried out
//   - store.go: the statements
package closure

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/needs"
)

// Deletion is what an owner has asked for.
type Deletion struct {
	_       struct{}   `doc:"That an account is going to be deleted, as one of its owners has asked." schema:"AccountDeletion"`
	AskedBy string     `json:"asked_by" format:"uuid" doc:"id of the owner who asked"`
	AskedAt time.Time  `json:"asked_at" doc:"when"`
	EndsAt  time.Time  `json:"ends_at" doc:"until then any owner can take it back"`
	BegunAt *time.Time `json:"begun_at" example:"null" doc:"since when it is carried out and cannot be taken back; null: it is waited for"`
	Failure *string    `json:"failure" example:"null" doc:"what keeps it from going on; it is tried again; null: nothing"`
}

// Work is what an account has under way. Both act for tx.Account.
type Work interface {
	// End cancels some of the tasks that are not over, and tells whether there are more.
	End(tx *db.Tx) (more bool, err error)
	// Told tells whether all boxes know what was cancelled.
	Told(tx *db.Tx) (bool, error)
	// Release revokes all boxes of an account, outside of a transaction.
	Release(ctx context.Context, account string) error
}

// Payments ends what an account pays for.
type Payments interface {
	End(ctx context.Context, account string) error
}

// Departures removes an account. It is package departure, and what an account has outside of the database.
type Departures interface {
	// May answers why the account cannot be deleted as it is; "": it can.
	May(tx *db.Tx, account string) (why string, err error)
	// Remove removes the rows of an account, and answers the id of its departure.
	Remove(tx *db.Tx, account string) (id string, err error)
	// Left tells whether files are left of a departure.
	Left(tx *db.Tx, id string) (bool, error)
	// Finish removes its files and signs the proof.
	Finish(ctx context.Context, id string) error
}

// Needs are the dependencies of Service.
type Needs struct {
	DB         *db.DB
	Due        *due.Kernel
	Logger     *slog.Logger
	Work       Work
	Payments   Payments
	Departures Departures
	// Wait is how long a deletion can be taken back.
	Wait time.Duration
}

// Service deletes accounts.
type Service struct {
	Needs
	queue, files due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[row]{
		Name: "closure", Retry: ladder, AtOnce: 1, Load: load, Work: s.work, Open: open,
	})
	s.files = due.Register(n.Due, due.Queue[struct{}]{
		Name: "departure", Retry: ladder, AtOnce: 1, Load: s.loadFiles, Work: s.workFiles, Open: noneOpen,
	})
	return s
}

// Of returns the deletion that is asked for of an account; nil: none is.
func Of(tx *db.Tx, account string) (*Deletion, error) {
	r, ok, err := byAccount.Maybe(tx, account)
	if err != nil || !ok {
		return nil, err
	}
	return r.wire(), nil
}

func (r row) wire() *Deletion {
	d := &Deletion{AskedBy: r.AskedBy, AskedAt: r.AskedAt, EndsAt: r.EndsAt, BegunAt: r.BegunAt}
	if r.LastError != "" {
		d.Failure = &r.LastError
	}
	return d
}
