package worktree

import (
	"context"
	"path/filepath"
	"strconv"
)

// Shorten makes a fresh checkout show so many commits of the history of its commit. The
// cache has all of it, so that work is collected as from any other checkout.
func (w *Checkout) Shorten(ctx context.Context, depth int) error {
	c := command{gitDir: filepath.Join(w.dir, ".git"), dir: w.dir, protocol: "file", args: []string{
		"fetch", "-q", "--no-tags", "--no-write-fetch-head", "--depth=" + strconv.Itoa(depth), "--end-of-options",
		"file://" + w.cache.dir, w.base,
	}}
	_, err := c.run(ctx)
	return err
}
