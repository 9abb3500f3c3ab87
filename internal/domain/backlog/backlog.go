// Package backlog imports the issues that are open at a repository's host: an
// operator asks for it, a job is queued, and any node files an ask for each
// issue that has none yet. A host that keeps no issues, as the built-in one,
// has nothing to import, and the job says so.
package backlog

import (
	"context"
	"log/slog"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
)

// State is where an import stands.
type State string

// The states.
const (
	Queued  State = "queued"
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed" // the host did not answer, again and again
)

// Issue is one that is open at the host.
type Issue struct {
	Key   string // what the host knows it by, for good; unique in the repository
	Title string
	Body  string
}

// Repo is the repository to import for.
type Repo struct {
	ID      string
	Host    string
	Owner   string
	Name    string
	Enabled bool
}

// Host lists the issues of repositories.
type Host interface {
	// Issues lists what is open in a repository; kept is false for a host that
	// keeps no issues.
	Issues(ctx context.Context, r Repo) (open []Issue, kept bool, err error)
}

// NoIssues is a Host that keeps none, as the built-in one.
type NoIssues struct{}

// Issues answers that there are none.
func (NoIssues) Issues(context.Context, Repo) ([]Issue, bool, error) { return nil, false, nil }

// Asks is where issues go.
type Asks interface {
	// File files an ask in tx.Account, and tells whether it is a new one. By is a
	// label of the record.
	File(tx *db.Tx, repoID, by string, i Issue) (filed bool, err error)
}

// Needs is what New asks for.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
	Logger *slog.Logger
	Host   Host
	Asks   Asks
}

// Service holds the imports.
type Service struct{ Needs }

// New makes the service. It panics if something that it needs is lacking.
func New(n Needs) *Service {
	needs.Whole(n)
	return &Service{Needs: n}
}
