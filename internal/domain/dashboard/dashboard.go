// Package dashboard keeps boards of widgets: numbers, series, tables, lists and texts about the
// work of an account. A widget names what it shows; what that is comes from package measure when
// the board is read, and never shows more than the reader may see elsewhere.
//
//   - dashboard.go: the types, and Service
//   - widget.go: what widgets may be
//   - data.go: what they show
//   - builtin.go: the boards that every account has; loop.go makes them
//   - ops.go, events.go: the capabilities, the events
//   - store.go: the statements
package dashboard

import (
	"log/slog"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/needs"
)

const (
	mostBoards  = 100 // of an account, and of a person in it
	mostWidgets = 40  // of a board
)

// Repos finds the repositories of tx.Account.
type Repos interface {
	ByName(tx *db.Tx, owner, name string) (id string, ok bool, err error)
	// Name is owner/name of a repository by its id; "" if it is gone.
	Name(tx *db.Tx, repoID string) (string, error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Due    *due.Kernel
	Repos  Repos
	Logger *slog.Logger
}

// Service has the capabilities of boards, and keeps the built-in ones.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[string]{
		Name: "dashboard_syncs", Work: s.work,
		Load: func(_ *db.Tx, job string) (string, bool, error) { return job, true, nil },
		Open: func(tx *db.Tx, _ int) ([]due.Open, error) { return syncOpen.All(tx) },
	})
	return s
}
