package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"yardmaster/internal/db"
	"yardmaster/internal/db/lease"
)

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

// takeLease keeps a second server off a PostgreSQL database, unless both may share
// the database. It does nothing if this server has the lease already.
func (a *App) takeLease(ctx context.Context, d *db.DB) (err error) {
	if d.Engine() != db.Postgres || a.lease != nil || a.opts.Still { // a copy has the original's lease in it
		return nil
	}
	machine, err := os.Hostname()
	if err != nil {
		machine = "an unknown machine"
	}
	a.lease, err = lease.Take(ctx, lease.Config{DB: d, Cluster: a.cfg.Cluster == "on", Name: a.base + " on " + machine, Logger: a.log})
	return err
}

// unlock ends a lock at once. Closing the file alone would not: a process that is
// being started elsewhere in this program holds a copy of it until it runs.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
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
