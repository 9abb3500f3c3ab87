// Package backlog imports the open issues of a repository's code host. An operator
// asks for an import, which is queued as a job; any node takes the job and files an
// ask for each issue that has none yet. Nobody vouches for an issue by importing it: work
// begins by itself only on those whose author may write to the repository. A host that
// keeps no issues, as the built-in
// one, has nothing to import, and the event of the job's end says so.
package backlog

import (
	"log/slog"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/needs"
)

// State is the state of an import.
type State string

// The states.
const (
	Queued  State = "queued"
	Running State = "running"
	Done    State = "done"
	Failed  State = "failed" // the host failed to answer maxTries times
)

// Asks is the part of asks that an import needs.
type Asks interface {
	// File files the ask of an issue in tx.Account, unless there is one of its key
	// already, and tells whether File filed it. by is a label of the record. trusted says
	// that a verdict about it may begin work.
	File(tx *db.Tx, repoID, by string, i codehost.Issue, trusted bool) (filed bool, err error)
}

// Needs are the dependencies of Service.
type Needs struct {
	DB     *db.DB
	Due    *due.Kernel
	Logger *slog.Logger
	Hosts  *codehost.Hosts
	Asks   Asks
}

// Service queues imports and carries them out.
type Service struct {
	Needs
	queue due.Entries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	s := &Service{Needs: n}
	s.queue = due.Register(n.Due, due.Queue[job]{
		Name: "backlog", AtOnce: atOnce, Retry: ladder, Load: load, Work: s.work, GiveUp: s.giveUp, Open: open,
	})
	return s
}
