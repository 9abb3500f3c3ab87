package box

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"yardmaster/internal/box/worktree"
)

// Work that could not be pushed is kept for keptFor, unless its task runs here again before.
// A box looks for older work when it starts, and every keptScan.
const (
	keptFor  = 30 * 24 * time.Hour
	keptScan = 24 * time.Hour
)

// forgetKept forgets old work until ctx ends.
func (b *box) forgetKept(ctx context.Context) {
	for ctx.Err() == nil {
		if err := b.forgetKeptBefore(ctx, time.Now().Add(-keptFor)); err != nil && ctx.Err() == nil {
			b.log.Warn("old work was not forgotten", "error", err)
		}
		sleep(ctx, keptScan)
	}
}

// forgetKeptBefore forgets the work that was kept before a time, of all repositories.
func (b *box) forgetKeptBefore(ctx context.Context, before time.Time) error {
	caches, err := filepath.Glob(filepath.Join(b.setup.work, "cache", "*", "HEAD"))
	if err != nil {
		return err
	}
	for _, head := range caches {
		if _, err := os.Stat(filepath.Join(filepath.Dir(head), "refs", "kept")); err != nil {
			continue // nothing is kept there
		}
		cache, err := worktree.Open(ctx, filepath.Dir(head))
		if err != nil {
			return err
		}
		n, err := cache.ForgetKept(ctx, before)
		if err != nil {
			return err
		}
		if n > 0 {
			b.log.Info("work that could not be pushed is forgotten: it is too old", "branches", n)
		}
	}
	return nil
}
