package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"yardmaster/internal/backup"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/nodes"
)

// mostSaid bounds what is said of one kind of fault.
const mostSaid = 20

// Restore puts a backup into the data folder, the database and the store of objects that c
// configures. The folder has no repositories yet, and there is no database.
func (b Backup) Restore(ctx context.Context, c *config.Config, from string) (err error) {
	m, err := b.sound(from)
	if err != nil {
		return err
	}
	held, err := lock(c.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock(held)) }()
	if err := putBack(ctx, c, from, m); err != nil {
		return err
	}
	have, err := db.Count(ctx, c.Database)
	if err != nil {
		return err
	}
	if wrong := differ(m.Rows, have.Rows); len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	fmt.Fprintf(b.Out, "The backup of %s is in %s: %d repositories, %d objects.\n", m.MadeAt.Format("2006-01-02 15:04:05 MST"), c.Data,
		len(m.Repositories), m.Objects)
	sayMoved(b.Out, m)
	sayElsewhere(b.Out, m)
	if file := keyFile(c); file != "" {
		if _, err := os.Stat(file); err != nil {
			fmt.Fprintf(b.Out, "The master key of its time is not there yet: put it to %s, or no server starts.\n", file)
		}
	}
	fmt.Fprintf(b.Out, "Start it: yardmaster serve --data %s. It owes the mails and webhooks that the original owed.\n", c.Data)
	return nil
}

// sound reads a backup and holds its files against their sums.
func (b Backup) sound(from string) (m backup.Manifest, err error) {
	if m, err = backup.Open(from); err != nil {
		return m, err
	}
	wrong, err := backup.Verify(from, m)
	if err == nil && len(wrong) > 0 {
		err = errors.New(listed(wrong))
	}
	if err == nil {
		fmt.Fprintf(b.Out, "files: %d are as their sums say\n", m.Files)
	}
	return m, err
}

func listed(wrong []string) string {
	if n := len(wrong) - mostSaid; n > 0 {
		wrong = append(slices.Clone(wrong[:mostSaid]), fmt.Sprintf("and %d more", n))
	}
	return strings.Join(wrong, "\n")
}

// putBack puts a backup in place, the database last: without it no server takes the rest for its own.
func putBack(ctx context.Context, c *config.Config, from string, m backup.Manifest) error {
	engine := db.Postgres
	if strings.HasPrefix(c.Database, "sqlite:") {
		engine = db.SQLite
	}
	if engine.String() != m.Engine {
		return fmt.Errorf("the backup is of a %s database, and --database names one of %s", m.Engine, engine)
	}
	if err := db.Vacant(ctx, c.Database); err != nil {
		return err
	}
	root := filepath.Join(c.Data, backup.GitFolder)
	if in, err := os.ReadDir(root); err == nil && len(in) > 0 {
		return fmt.Errorf("%s is not empty: a backup is put into an empty folder only; if a restore into it was cut off, remove it first", root)
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	if err := backup.PutBack(from, root, m); err != nil {
		return err
	}
	if err := putObjects(ctx, c, from); err != nil {
		return err
	}
	if err := filesBack(c, from); err != nil {
		return err
	}
	syscall.Sync() // a database names what is on the disk
	return db.Restore(ctx, c.Database, filepath.Join(from, m.Database))
}

// filesBack puts what a backup has of the keys, the heads and the id of the node where there are none yet.
func filesBack(c *config.Config, from string) error {
	for name, to := range map[string]string{
		backup.KeyFile: keyFile(c), backup.HeadsFile: c.HeadsFile, nodes.File: filepath.Join(c.Data, nodes.File),
	} {
		if to == "" {
			continue
		}
		if err := backup.PutFile(from, name, to); err != nil {
			return err
		}
	}
	return nil
}

// differ says in which tables the rows are not as many as they should be.
func differ(want, have map[string]int64) (wrong []string) {
	all := maps.Clone(want)
	maps.Copy(all, have)
	for _, table := range slices.Sorted(maps.Keys(all)) {
		if want[table] != have[table] {
			wrong = append(wrong, fmt.Sprintf("table %s has %d rows, and had %d", table, have[table], want[table]))
		}
	}
	return wrong
}

// sayElsewhere says whose repositories a backup lacks.
func sayElsewhere(out io.Writer, m backup.Manifest) {
	for _, node := range m.Elsewhere {
		fmt.Fprintf(out, "The repositories of the node %s are not in it.\n", node)
	}
}

// sayMoved says what copied refs may have beyond the copied rows.
func sayMoved(out io.Writer, m backup.Manifest) {
	n := 0
	for _, r := range m.Repositories {
		for _, ref := range r.Moved {
			if n++; n <= mostSaid {
				fmt.Fprintf(out, "%s: %s was moved while the backup was made, to %.12s: the rows may not know of it\n",
					strings.TrimSuffix(r.Path, ".git"), ref.Ref, ref.Is)
			}
		}
	}
	switch {
	case n > mostSaid:
		fmt.Fprintf(out, "and %d more refs\n", n-mostSaid)
	case n == 0:
		fmt.Fprintln(out, "refs: none was moved while the backup was made, so the rows know of all")
	}
	if n > 0 {
		fmt.Fprintln(out, "Such a push is a push that the restored server has not heard of: it takes note of those to branches of open pull requests by itself.")
	}
}
