package app

import (
	"context"
	"sync"

	"yardmaster/internal/api/op"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/service"
	"yardmaster/internal/domain/signin"
)

// about is what runs here, and the probes of all that it stands on.
func (a *App) about(sessions *signin.Service, runs *run.Service) service.Needs {
	n := service.Needs{
		Sessions: sessions, Version: a.opts.Version, SHA: a.opts.SHA,
		Document:  sync.OnceValues(func() (*op.Asset, error) { return documentAsset(a.opts.Version) }),
		Reference: sync.OnceValues(func() (*op.Asset, error) { return referenceAsset(a.opts.Version) }),
		Probes: map[string]func(context.Context) error{
			"database": a.db.Ping,
			"bus":      a.bus.Ping,
			"events":   func(context.Context) error { return runs.Stuck() },
			"storage":  a.storage, "migrations": a.migrated, "mail": a.mails, "repositories": a.repositories,
		},
		Needed: []string{"database", "bus", "migrations", "storage", "mail"}, Free: a.free, Stopping: a.stopping.Load,
	}
	if a.cache != nil {
		n.Probes["cache"] = a.cache.Ping
	}
	return n
}
