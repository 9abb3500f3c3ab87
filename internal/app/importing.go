package app

import (
	"context"
	"errors"
	"fmt"
	"os"

	"yardmaster/internal/bundle"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/release"
)

// ImportRelease puts a signed program, or each of a bundle, into the ledger of the configured server,
// and its bytes to where boxes get them. Servers may run. It answers what is in the ledger then, at
// least one if it does not fail.
func ImportRelease(ctx context.Context, c *config.Config, path string) (out []release.Imported, err error) {
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
	programs, remove, err := programsOf(path, c.ReleaseKeys)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	for _, program := range programs {
		one, err := release.Import(ctx, d, objects, c.ReleaseKeys, program)
		if err != nil {
			return out, err
		}
		out = append(out, one)
	}
	return out, nil
}

// programsOf are the paths of the programs of a bundle by one of keys, in a folder that remove
// removes, or the path itself if it is no bundle.
func programsOf(path string, keys []string) (out []string, remove func() error, err error) {
	remove = func() error { return nil }
	if is, err := bundle.Is(path); err != nil || !is {
		return []string{path}, remove, err
	}
	by, err := bundle.Keys(keys)
	if err != nil {
		return nil, remove, fmt.Errorf("release-keys: %w", err)
	}
	at, err := os.MkdirTemp("", "yardmaster-bundle-")
	if err != nil {
		return nil, remove, err
	}
	remove = func() error { return os.RemoveAll(at) }
	is, err := bundle.Open(path, by, at, false)
	if err == nil {
		out, err = is.Programs(at)
	}
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s has no program", path)
	}
	if err != nil {
		return nil, remove, errors.Join(err, remove())
	}
	return out, remove, nil
}
