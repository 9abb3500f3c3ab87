package app

import (
	"context"
	"sync"

	"yardmaster/internal/api/op"
	"yardmaster/internal/domain/service"
	"yardmaster/internal/domain/signin"
)

// newService tells what runs here, and whether all that it stands on works.
func (a *App) newService(in *signin.Service) *service.Service {
	s := &service.Service{
		Who: func(ctx context.Context) (string, string, error) {
			who, err := in.Who(ctx)
			return who.Login, who.Account, err
		},
		Version: a.opts.Version, SHA: a.opts.SHA, Document: sync.OnceValues(func() (*op.Asset, error) { return documentAsset(a.opts.Version) }),
		Reference: sync.OnceValues(func() (*op.Asset, error) { return referenceAsset(a.opts.Version) }),
		Probes: map[string]func(context.Context) error{
			"database": a.db.Ping,
			"bus":      a.bus.Ping,
			"events":   func(context.Context) error { return a.parts.run.Stuck() },
			"storage":  a.storage, "migrations": a.migrated, "mail": a.mails, "repositories": a.repositories,
		},
		Needed: []string{"database", "bus", "migrations", "storage", "mail"}, Free: a.free, Stopping: a.stopping.Load,
	}
	if a.cache != nil {
		s.Probes["cache"] = a.cache.Ping
	}
	return s
}
