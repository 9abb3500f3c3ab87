package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/bus"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/run"
	"yardmaster/internal/domain/service"
	"yardmaster/internal/domain/signin"
	"yardmaster/internal/mail"
)

// about describes this server: its version, its documents, and the probes of its
// parts.
func (a *App) about(sessions *signin.Service, runs *run.Service) service.Needs {
	n := service.Needs{
		Sessions: sessions, Version: a.opts.Version, SHA: a.opts.SHA, Dashboard: a.cfg.UI == "on",
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
	if a.clustered() {
		n.Probes["nodes"], n.Needed = a.routes, append(n.Needed, "nodes")
	}
	if a.cache != nil {
		n.Probes["cache"] = a.cache.Ping
	}
	return n
}

// routes probes whether the bus reaches every live node. A node that reaches most is degraded;
// one that is cut off has no boxes, and is not ready.
func (a *App) routes(ctx context.Context) error {
	err := a.bus.Routes(ctx)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, bus.ErrCutOff):
		return &service.Trouble{Detail: "This node is cut off from the other nodes and has let its boxes go. " + err.Error()}
	}
	return &service.Trouble{Degraded: true, Detail: "This node does not reach every other one: nudges between them are lost. " + err.Error()}
}

// migrated probes whether the database has every table and column that this
// build uses; one that a newer build has brought further has them, too.
func (a *App) migrated(ctx context.Context) error { return a.db.Migrated(ctx) }

// latestMail is how long a mail may wait before something is wrong with the mail
// server; one that fails is tried again after minutes.
const latestMail = 15 * time.Minute

// mails probes whether mails get out.
func (a *App) mails(ctx context.Context) error {
	var oldest *time.Time
	var down *mail.Outage
	var now time.Time
	err := a.db.Read(ctx, func(tx *db.Tx) (err error) {
		now = tx.Now
		if oldest, err = a.mail.Oldest(tx); err != nil {
			return err
		}
		down, err = mail.Down(tx)
		return err
	})
	if err != nil || oldest == nil || now.Sub(*oldest) < latestMail {
		return err
	}
	detail := fmt.Sprintf("The oldest mail that is not out yet waits for %s.", now.Sub(*oldest).Truncate(time.Minute))
	if down != nil {
		detail += fmt.Sprintf(" The mail server takes no mails since %s UTC; yardmaster mail --queue says why.",
			down.Since.UTC().Format(time.DateTime))
	}
	return &service.Trouble{Degraded: true, Detail: detail}
}

// repositories probes whether every repository of the built-in host is there, on all nodes.
func (a *App) repositories(ctx context.Context) error {
	if a.nodes != nil {
		switch n, err := a.nodes.Down(ctx); {
		case err != nil:
			return err
		case n > 0:
			return &service.Trouble{Degraded: true,
				Detail: fmt.Sprintf("Nodes are down that have the folders of repositories: %d. Whoever asks for one is told which node.", n)}
		}
	}
	found := a.parts.repo.FoundApart()
	switch n := len(a.host.Lost()); n {
	case 0:
		if len(found.Older)+len(found.Unknown) == 0 {
			return nil
		}
		return &service.Trouble{Degraded: true, Detail: fmt.Sprintf("Repositories and the database are of different times: the folders "+
			"of %d are older, and %d are not known to it; the server's log names them.", len(found.Older), len(found.Unknown))}
	case 1:
		return &service.Trouble{Degraded: true, Detail: "The folder of a repository is not there; the server's log names it."}
	default:
		return &service.Trouble{Degraded: true,
			Detail: fmt.Sprintf("The folders of %d repositories are not there; the server's log names them.", n)}
	}
}
