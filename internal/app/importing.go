package app

import (
	"context"
	"errors"
	"fmt"

	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/release"
)

// ImportRelease puts a signed program into the ledger of the configured server, and its bytes to
// where boxes get them. Servers may run.
func ImportRelease(ctx context.Context, c *config.Config, path string) (out release.Imported, err error) {
	if _, err := exists(c); err != nil {
		return out, err
	}
	if len(c.ReleaseKeys) == 0 {
		return out, errors.New("nothing says whose programs may be imported: name their public keys with release-keys")
	}
	ring, err := readKeys(ctx, c)
	if err != nil {
		return out, err
	}
	d, err := db.Open(ctx, c.Database, db.Options{})
	if err != nil {
		return out, fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	objects, err := (&App{cfg: c, ring: ring, base: c.BaseURL}).objects(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, objects.Close()) }()
	return release.Import(ctx, d, objects, c.ReleaseKeys, path)
}
