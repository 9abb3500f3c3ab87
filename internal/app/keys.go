package app

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"yardmaster/internal/bus"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/seal"
)

var (
	readMeta   = db.Q[string](`SELECT value FROM meta WHERE key = $1`)
	insertMeta = db.S(`INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`)
)

// remember answers the value kept under key, made with fresh on first use.
// Nodes that start together agree on one.
func remember(ctx context.Context, d *db.DB, key string, fresh func() (string, error)) (string, error) {
	var value string
	var ok bool
	read := func(tx *db.Tx) (err error) {
		value, ok, err = readMeta.Maybe(tx, key)
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
		if _, err := insertMeta.Exec(tx, key, v); err != nil {
			return err
		}
		return read(tx)
	})
	return value, err
}

// busKeys are the NATS seeds, sealed in the database.
func busKeys(ctx context.Context, d *db.DB, ring *seal.Keyring) (bus.Keys, error) {
	var keys bus.Keys
	sealed, err := remember(ctx, d, "bus-keys", func() (string, error) {
		k, err := bus.NewKeys()
		if err != nil {
			return "", err
		}
		b, err := json.Marshal(k)
		return ring.Seal("bus-keys", b), err
	})
	if err != nil {
		return keys, fmt.Errorf("bus keys: %w", err)
	}
	b, err := ring.Unseal("bus-keys", sealed)
	if err != nil {
		return keys, fmt.Errorf("bus keys: %w; is this the master key the data was made with?", err)
	}
	return keys, json.Unmarshal(b, &keys)
}

// keyring opens the master key: the configured one, or the file in the data
// folder.
func keyring(c *config.Config) (*seal.Keyring, error) {
	if c.MasterKey != "" {
		return seal.Parse(c.MasterKey)
	}
	return seal.Open(filepath.Join(c.Data, "master.key"))
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
		return nil, fmt.Errorf("the data folder %s is in use by another server", data)
	}
	return f, nil
}

// natsPort keeps the port that boxes connect to across restarts, when the
// configuration leaves the choice to us: they know the address by heart.
func natsListen(ctx context.Context, d *db.DB, c *config.Config, started func(listen string) (addr string, err error)) error {
	listen := c.NATSListen
	host, port, ok := strings.Cut(listen, ":")
	var kept string
	if ok && port == "0" {
		err := d.Read(ctx, func(tx *db.Tx) (err error) {
			kept, _, err = readMeta.Maybe(tx, "nats-listen")
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
