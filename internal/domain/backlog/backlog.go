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

// Service holds the imports.
type Service struct {
	DB     *db.DB
	Hub    *event.Hub
	Logger *slog.Logger
	// Issues lists what is open at a repository's host; kept is false for a host
	// that keeps no issues.
	Issues func(ctx context.Context, r Repo) (open []Issue, kept bool, err error)
	// File files an ask in tx.Account, and tells whether it is a new one.
	File func(tx *db.Tx, repoID, by string, i Issue) (filed bool, err error)
}
