package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/meta"
	"yardmaster/internal/seal"
	"yardmaster/internal/seal/keys"
)

// untouched returns a function that restores a data folder to its present state, if
// nothing but the lock was made in it.
func untouched(data string) (undo func()) {
	file := filepath.Join(data, "lock")
	_, noFolder := os.Stat(data)
	_, noFile := os.Stat(file)
	return func() {
		if noFile != nil {
			os.Remove(file)
		}
		if noFolder != nil {
			os.Remove(data)
		}
	}
}

// keyFile is the file that holds the master keys; empty where they come from
// elsewhere.
func keyFile(c *config.Config) string {
	switch {
	case c.MasterKey != "" || len(c.KeyCommand) > 0:
		return ""
	case c.KeyFile != "":
		return c.KeyFile
	}
	return filepath.Join(c.Data, "master.key")
}

// keyPlace names where the master keys come from, to people.
func keyPlace(c *config.Config) string {
	switch path := keyFile(c); {
	case path != "":
		return path
	case c.MasterKey != "":
		return "master-key"
	}
	return "what master-key-command prints"
}

// readKeys are the master keys; nil where the file of them is not there.
func readKeys(ctx context.Context, c *config.Config) (*seal.Keyring, error) {
	switch {
	case c.MasterKey != "":
		return seal.Parse(c.MasterKey)
	case len(c.KeyCommand) > 0:
		return keys.Command(ctx, c.KeyCommand)
	}
	k, err := seal.Read(keyFile(c))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return k, err
}

// keyring is ring if it fits the database, and a new one where there is none
// and nothing is sealed: a key that is missing is never replaced while there is
// something that only it opens. On refusal nothing has been made.
func keyring(ctx context.Context, d *db.DB, c *config.Config, ring *seal.Keyring, log *slog.Logger) (*seal.Keyring, error) {
	census, err := keys.Take(ctx, d, ring, sealedColumns())
	if err != nil {
		return nil, err
	}
	if ring == nil {
		if census.Total() > 0 {
			return nil, fmt.Errorf("there is no %s, and %s: put that key there, or say where it is with master-key-file or master-key-command; no new one is made while sealed values exist",
				keyPlace(c), keys.Wanted(census))
		}
		return firstKey(ctx, d, c)
	}
	wrong := func(why string) error {
		return fmt.Errorf("%s has the master key %s, but %s: start with that key", keyPlace(c), strings.Join(ring.IDs(), ", "), why)
	}
	if err := keys.Opens(ring, census); err != nil {
		return nil, wrong(err.Error())
	}
	sealed, err := metaValue(ctx, d, meta.BusKeys)
	if err != nil {
		return nil, err
	}
	if _, err := ring.Unseal(meta.BusKeys, sealed); sealed != "" && err != nil {
		return nil, wrong("the keys of the message bus do not open with it: " + err.Error())
	}
	log.InfoContext(ctx, "master keys", slog.String("seals", ring.ID()), slog.Any("open", ring.IDs()))
	for _, id := range census.Keys() {
		if n := census.Under(id); id == keys.Unopened {
			log.ErrorContext(ctx, "values that no master key opens", slog.Int64("values", n))
		} else if !slices.Contains(ring.IDs(), id) {
			log.ErrorContext(ctx, "values are sealed with a master key that is not here", slog.String("key", id), slog.Int64("values", n))
		}
	}
	return ring, nil
}

// firstKey makes the first master key of a database. Of nodes that start
// together with folders of their own, those that come second are refused.
func firstKey(ctx context.Context, d *db.DB, c *config.Config) (*seal.Keyring, error) {
	path := keyFile(c)
	ours, err := seal.New().Create(path)
	if err != nil {
		return nil, err
	}
	ring, err := seal.Read(path)
	if err != nil {
		return nil, err
	}
	if _, err := busKeys(ctx, d, ring); err != nil {
		if ours {
			os.Remove(path) // nothing is sealed with it
		}
		return nil, fmt.Errorf("another server has sealed the database meanwhile, with a master key of its own: copy it to %s (%w)",
			path, err)
	}
	return ring, nil
}

// metaValue returns the value that meta keeps under a key, empty if there is none.
func metaValue(ctx context.Context, d *db.DB, key string) (value string, err error) {
	err = d.Read(ctx, func(tx *db.Tx) (err error) {
		value, _, err = meta.Read(tx, key)
		return err
	})
	return value, err
}
