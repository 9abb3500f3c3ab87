package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"yardmaster/internal/bus"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/lease"
	"yardmaster/internal/db/meta"
	"yardmaster/internal/domain/blocker"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/sso"
	"yardmaster/internal/domain/vault"
	"yardmaster/internal/id"
	"yardmaster/internal/mail"
	"yardmaster/internal/seal"
	"yardmaster/internal/seal/keys"
)

// remember answers the value kept under key, made with fresh on first use.
// Nodes that start together agree on one.
func remember(ctx context.Context, d *db.DB, key string, fresh func() (string, error)) (string, error) {
	var value string
	var ok bool
	read := func(tx *db.Tx) (err error) {
		value, ok, err = meta.Read(tx, key)
		return err
	}
	if err := d.Read(ctx, read); err != nil || ok {
		return value, err
	}
	v, err := fresh()
	if err != nil {
		return "", err
	}
	err = d.Write(ctx, func(tx *db.Tx) error {
		if err := meta.Add(tx, key, v); err != nil {
			return err
		}
		return read(tx)
	})
	return value, err
}

// sealedColumns are all places of the database that hold sealed values.
func sealedColumns() []keys.Column {
	return []keys.Column{meta.Sealed, modelkey.Sealed, vault.Sealed, sso.Sealed, blocker.Sealed, mail.Sealed}
}

// rememberSealed is remember of what nobody may read in the database.
func rememberSealed(ctx context.Context, d *db.DB, ring *seal.Keyring, key string, fresh func() ([]byte, error)) ([]byte, error) {
	sealed, err := remember(ctx, d, key, func() (string, error) {
		b, err := fresh()
		return ring.Seal(key, b), err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	b, err := ring.Unseal(key, sealed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; is this the master key the data was made with?", key, err)
	}
	return b, nil
}

// busKeys are the NATS seeds, sealed in the database.
func busKeys(ctx context.Context, d *db.DB, ring *seal.Keyring) (keys bus.Keys, err error) {
	b, err := rememberSealed(ctx, d, ring, meta.BusKeys, func() ([]byte, error) {
		k, err := bus.NewKeys()
		if err != nil {
			return nil, err
		}
		return json.Marshal(k)
	})
	if err != nil {
		return keys, err
	}
	return keys, json.Unmarshal(b, &keys)
}

// changeBusKeys puts other NATS seeds in the place of those in the database.
// Servers that run keep theirs until they are started again. change may be
// called more than once.
func changeBusKeys(ctx context.Context, d *db.DB, ring *seal.Keyring, change func(*bus.Keys) error) error {
	return d.Write(ctx, func(tx *db.Tx) error {
		sealed, ok, err := meta.Read(tx, meta.BusKeys)
		if err != nil || !ok {
			return cmp.Or(err, db.ErrNoRows)
		}
		b, err := ring.Unseal(meta.BusKeys, sealed)
		if err != nil {
			return fmt.Errorf("%s: %w", meta.BusKeys, err)
		}
		var k bus.Keys
		if err := json.Unmarshal(b, &k); err != nil {
			return err
		}
		if err := change(&k); err != nil {
			return err
		}
		if b, err = json.Marshal(k); err != nil {
			return err
		}
		changed, err := meta.Replace(tx, meta.BusKeys, sealed, ring.Seal(meta.BusKeys, b))
		if err == nil && !changed {
			err = errors.New("the keys of the bus were changed by somebody else meanwhile: try again")
		}
		return err
	})
}

// clientKeys seal the client_ids of programs that registered themselves. They
// are a key of their own, sealed in the database, because a client_id has no
// end: it outlives the master key.
func clientKeys(ctx context.Context, d *db.DB, ring *seal.Keyring) (*seal.Keyring, error) {
	b, err := rememberSealed(ctx, d, ring, meta.ClientKey, func() ([]byte, error) { return []byte(seal.New().Reveal()), nil })
	if err != nil {
		return nil, err
	}
	return seal.Parse(string(b))
}

// setupToken is the token of the first-boot address: the configured one, or
// one made once and kept until somebody has used it.
func setupToken(ctx context.Context, d *db.DB, c *config.Config) (string, error) {
	if c.SetupToken != "" {
		return c.SetupToken, nil
	}
	return remember(ctx, d, "setup-token", func() (string, error) { return id.Secret(id.Setup), nil })
}

// lock keeps a second server off the data folder. The lock ends with the
// process, however that ends.
func lock(data string) (*os.File, error) {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(data, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("%w: the data folder %s is in use by another server", lease.ErrInUse, data)
	}
	return f, nil
}

// takeLease keeps a second server off a PostgreSQL database, unless both may
// share it. Once it has the lease it does nothing.
func (a *App) takeLease(ctx context.Context, d *db.DB) (err error) {
	if d.Engine() != db.Postgres || a.lease != nil {
		return nil
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "an unknown machine"
	}
	a.lease, err = lease.Take(ctx, lease.Config{DB: d, Cluster: a.cfg.Cluster == "on", Name: a.base + " on " + machine, Logger: a.log})
	return err
}

// lockFile keeps a second server off the file of SQLite, whatever its data folder
// is. The lock ends with the process, however that ends.
func (a *App) lockFile() error {
	path, ok := strings.CutPrefix(a.cfg.Database, "sqlite:")
	if !ok {
		return nil
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	path = filepath.Join(dir, filepath.Base(path))
	if a.file, err = os.OpenFile(path+"-lock", os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	if err := syscall.Flock(int(a.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%w: the database %s is in use by another server", lease.ErrInUse, path)
	}
	return nil
}

// keepLease renews the lease, where there is one.
func (a *App) keepLease(ctx context.Context) error {
	if a.lease == nil {
		return nil
	}
	return a.lease.Loop(ctx)
}

// natsPort keeps the port that boxes connect to across restarts, when the
// configuration leaves the choice to us: they know the address by heart.
func natsListen(ctx context.Context, d *db.DB, c *config.Config, started func(listen string) (addr string, err error)) error {
	listen := c.NATSListen
	host, port, ok := strings.Cut(listen, ":")
	var kept string
	if ok && port == "0" {
		err := d.Read(ctx, func(tx *db.Tx) (err error) {
			kept, _, err = meta.Read(tx, "nats-listen")
			return err
		})
		if err != nil {
			return err
		}
		if strings.HasPrefix(kept, host+":") {
			listen = kept
		}
	}
	addr, err := started(listen)
	if err != nil || kept != "" || port != "0" {
		return err
	}
	_, err = remember(ctx, d, "nats-listen", func() (string, error) { return addr, nil })
	return err
}
