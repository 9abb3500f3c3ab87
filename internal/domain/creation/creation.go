// Package creation makes repositories: at the built-in host, and in organisations of
// another host that have installed the App. It writes down what was asked for, has the
// host make the repository, makes the first commit from an embedded set of files, and
// queues the task that sets the repository up. The queue "creations" goes on where a server was
// killed or the host did not answer.
//
//   - creation.go: Needs, Service
//   - ops.go: project.create
//   - work.go: the steps
//   - base.go, base/: the files that a repository begins with
//   - store.go, events.go
package creation

import (
	"context"
	"log/slog"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/needs"
)

// Place is an owner under which tx.Account may make repositories.
type Place struct {
	Host           string // name of the code host
	Owner          string // login of the owner there
	InstallationID string // "" at a host without installations
	Suspended      bool
	Administration bool // the owner has granted what making a repository takes
}

// Places tells under which owners an account may make repositories.
type Places interface {
	// Of lists the places of tx.Account: those of other hosts first, the oldest first.
	Of(tx *db.Tx) ([]Place, error)
}

// Repos is the part of repositories that is needed of their service.
type Repos interface {
	// Wrote records the first commit of a repository.
	Wrote(ctx context.Context, r codehost.Repo, branch, sha, by string) error
	// Rows shows repositories of tx.Account.
	Rows(tx *db.Tx, ids []string, limit int) ([]repo.Repository, error)
}

// Setup is the task that sets up a new repository.
type Setup struct {
	RepoID, UserID     string // UserID: for whom; empty: nobody
	Description, Stack string // what the owner wants, in words
}

// Setups queues tasks that set up repositories.
type Setups interface {
	// Begin queues the task of a repository of tx.Account. Where none can be queued, the
	// id is empty and note says why.
	Begin(tx *db.Tx, s Setup) (taskID, note string, err error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Hub    *event.Hub
	Due    *due.Kernel
	Logger *slog.Logger
	Hosts  *codehost.Hosts
	Places Places
	Repos  Repos
	Setups Setups
	Author codehost.Person // of the first commit
}

// Service makes repositories.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[row]{
		Name: "creations", AtOnce: atOnce, Retry: due.Ladder{First: shortest, Longest: longest}, Load: load, Work: s.goOn, Open: open,
	})
	return s
}
