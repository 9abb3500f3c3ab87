// Package duetest works on what is due in tests of the domains that own it, and holds the rows
// that wait for work against the entries of package db/due.
package duetest

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
)

// New makes the kernel of a node. What it logs is discarded.
func New(d *db.DB, hub *event.Hub) *due.Kernel {
	return due.New(due.Config{DB: d, Hub: hub, Logger: slog.New(slog.DiscardHandler)})
}

// Pass has the nodes of one database work at once on what is due, until nothing is. Then it
// fails t unless rows and entries agree, see Agree.
func Pass(ctx context.Context, t testing.TB, nodes ...*due.Kernel) {
	t.Helper()
	var all sync.WaitGroup
	for _, k := range nodes {
		all.Go(func() {
			if err := k.Drain(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	Agree(ctx, t, nodes[0])
}

// Agree fails t if a row waits that has no entry, or an entry has no row.
func Agree(ctx context.Context, t testing.TB, k *due.Kernel) {
	t.Helper()
	err := k.DB.Read(context.WithoutCancel(ctx), func(tx *db.Tx) error {
		astray, err := k.Astray(tx)
		if len(astray) > 0 {
			t.Errorf("what is due and its rows: %q", astray)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
