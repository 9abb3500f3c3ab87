package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"yardmaster/internal/backup"
	"yardmaster/internal/blob"
	"yardmaster/internal/codehost"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/nodes"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// Drill puts a backup into a folder of its own, starts a server on it that reaches nobody, and
// checks the copy. Of c it takes the master keys alone. Spare is the address of an empty PostgreSQL
// database, for a backup of such a one.
func (b Backup) Drill(ctx context.Context, c *config.Config, from, spare string) (err error) {
	m, err := b.sound(from)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "yardmaster-drill-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	copied, err := drillConfig(ctx, c, from, dir, spare, m)
	if err != nil {
		return err
	}
	if err := putBack(ctx, copied, from, m); err != nil {
		return err
	}
	have, err := db.Count(ctx, copied.Database)
	if err != nil {
		return err
	}
	d := &drill{b: b, m: m, dir: dir}
	d.found("rows", differ(m.Rows, have.Rows), "%d tables have as many rows as the original had", len(m.Rows))
	ctx, end := context.WithCancel(ctx)
	defer end()
	var failed error
	err = Run(ctx, copied, Options{Version: b.Version, Logger: slog.New(slog.DiscardHandler), Still: true, Ready: func(a *App) {
		failed = d.inspect(ctx, a)
		end()
	}})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	sayMoved(b.Out, m)
	sayElsewhere(b.Out, m)
	if d.wrong > 0 {
		return fmt.Errorf("the backup is not sound: %d faults", d.wrong)
	}
	fmt.Fprintln(b.Out, "The backup is sound.")
	return nil
}

// drillConfig is the configuration of a copy that is tried: addresses of its own on this machine, and
// nobody to reach.
func drillConfig(ctx context.Context, c *config.Config, from, dir, spare string, m backup.Manifest) (*config.Config, error) {
	args := []string{"--data", dir, "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0"}
	switch ring, err := readKeys(ctx, c); {
	case err != nil:
		return nil, err
	case ring != nil && c.MasterKey != "":
		args = append(args, "--master-key", c.MasterKey)
	case ring != nil && len(c.KeyCommand) > 0:
		args = append(args, "--master-key-command", c.KeyCommand.String())
	case ring != nil:
		args = append(args, "--master-key-file", keyFile(c))
	case m.WithKeys:
		args = append(args, "--master-key-file", filepath.Join(from, backup.KeyFile))
	default:
		return nil, fmt.Errorf("the backup has no master key, and there is no %s: name the one of its time with --master-key-file, "+
			"or the server's folder with --data", keyPlace(c))
	}
	switch {
	case m.Engine == db.Postgres.String() && spare == "":
		return nil, errors.New("the backup is of a PostgreSQL database: name an empty one that it may be tried in with --spare")
	case m.Engine == db.Postgres.String():
		args = append(args, "--database", spare)
	}
	return config.Load("drill", args, func(string) (string, bool) { return "", false }, io.Discard)
}

// drill is a copy that is being checked.
type drill struct {
	b     Backup
	m     backup.Manifest
	dir   string
	wrong int
}

// found says what a check has found.
func (d *drill) found(what string, wrong []string, good string, args ...any) {
	if len(wrong) == 0 {
		fmt.Fprintf(d.b.Out, what+": "+good+"\n", args...)
		return
	}
	d.wrong += len(wrong)
	fmt.Fprintf(d.b.Out, "%s: WRONG\n%s\n", what, listed(wrong))
}

// inspect checks a copy that a server runs on.
func (d *drill) inspect(ctx context.Context, a *App) error {
	if err := d.answers(ctx, a); err != nil {
		return err
	}
	var rows int64
	var chains []string
	var objects []blob.Named
	var stored []codehost.Repo
	var away []nodes.Away
	own, err := nodes.Identity(d.dir)
	if err != nil {
		return err
	}
	if err := a.db.Read(ctx, func(tx *db.Tx) (err error) {
		if rows, chains, err = event.Proofread(tx); err != nil {
			return err
		}
		if objects, err = namedObjects(tx, d.m.MadeAt); err != nil {
			return err
		}
		if away, err = nodes.Elsewhere(tx, own); err != nil {
			return err
		}
		stored, err = repo.Pushed(tx)
		return err
	}); err != nil {
		return err
	}
	d.found("record", chains, "%d rows are whole, each chain from its first row to its head", rows)
	wrong, err := d.objects(ctx, a, objects)
	if err != nil {
		return err
	}
	d.found("objects", wrong, "%d are there", len(objects))
	d.found("repositories", d.repositories(ctx, stored, away), "%d are there; each is whole (git fsck) and can be cloned", len(d.m.Repositories))
	wrong = nil
	if s := a.bus.State(); !s.Connected || s.Boxes > 0 {
		wrong = append(wrong, fmt.Sprintf("connected is %v, boxes are %d", s.Connected, s.Boxes))
	}
	d.found("bus", wrong, "it runs, and nobody is on it")
	return nil
}

// answers asks the copy how it is.
func (d *drill) answers(ctx context.Context, a *App) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+a.listens+"/healthz", nil)
	if err != nil {
		return err
	}
	road := &http.Transport{} // no proxy
	defer road.CloseIdleConnections()
	resp, err := (&http.Client{Transport: road, Timeout: time.Minute}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 1<<16))
	if err != nil {
		return err
	}
	var wrong []string
	if resp.StatusCode != http.StatusOK {
		wrong = append(wrong, fmt.Sprintf("/healthz answers %d: %s", resp.StatusCode, said))
	}
	d.found("server", wrong, "it starts on the copy, and /healthz is 200")
	return nil
}

// objects looks for each object that a row names, but those that the original lacked itself.
func (d *drill) objects(ctx context.Context, a *App, named []blob.Named) (wrong []string, err error) {
	lacked := map[string]bool{}
	for _, key := range d.m.Lacking {
		lacked[key] = true
	}
	for _, o := range named {
		info, err := a.blob.Stat(ctx, o.Key)
		switch {
		case errors.Is(err, blob.ErrNotFound) && lacked[o.Key]:
		case errors.Is(err, blob.ErrNotFound):
			wrong = append(wrong, "object "+o.Key+" is missing")
		case err != nil:
			return wrong, err
		case o.Size >= 0 && info.Size != o.Size:
			wrong = append(wrong, fmt.Sprintf("object %s has %d bytes, and its row says %d", o.Key, info.Size, o.Size))
		}
	}
	return wrong, nil
}

// repositories has git look at each repository and clone it. Those that are away lack.
func (d *drill) repositories(ctx context.Context, stored []codehost.Repo, away []nodes.Away) (wrong []string) {
	have := map[string]bool{}
	for _, r := range away {
		have[r.Owner+"/"+r.Name] = true
	}
	for _, r := range d.m.Repositories {
		name := strings.TrimSuffix(r.Path, ".git")
		have[name] = true
		at := filepath.Join(d.dir, backup.GitFolder, filepath.FromSlash(r.Path))
		if err := backup.Examine(ctx, at, filepath.Join(d.dir, "clone")); err != nil {
			wrong = append(wrong, name+": "+err.Error())
		}
	}
	for _, r := range stored {
		if name := r.String(); !have[name] {
			wrong = append(wrong, name+" is not in the backup")
		}
	}
	return wrong
}
