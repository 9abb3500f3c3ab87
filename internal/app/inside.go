package app

import (
	"yardmaster/internal/db"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/task"
)

// Inside holds the parts of a running control plane that proofs use besides its API:
// the database, and the domains whose calls come from boxes.
type Inside struct {
	Listens  string // host and port of its API
	DB       *db.DB
	Data     string // the folder of --data
	Tasks    *task.Service
	Blockers *blocker.Service
}

// Inside returns the parts of a running control plane that no request reaches.
// The program itself does not call Inside.
func (a *App) Inside() Inside {
	return Inside{Listens: a.listens, DB: a.db, Data: a.cfg.Data, Tasks: a.parts.task, Blockers: a.parts.blocker}
}
