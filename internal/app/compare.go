package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/codehost/builtin"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/nodes"
	"yardmaster/internal/domain/repo"
)

// Compare says of which repositories the folders of the data folder and the database are of
// different times, as where a copy of one was put back without the other, and what can be done
// about each. It changes nothing, while the server runs or not. It fails if something is to be done.
func (b Backup) Compare(ctx context.Context, c *config.Config) (err error) {
	d, err := db.Open(ctx, c.Database, db.Options{AsIs: true})
	if err != nil {
		return fmt.Errorf("open the database: %w", err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	root := filepath.Join(c.Data, "git")
	host, err := builtin.New(builtin.Config{Root: root})
	if err != nil {
		return err
	}
	own, err := os.ReadFile(filepath.Join(c.Data, nodes.File))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	away := map[string]bool{}
	if err := d.Read(ctx, func(tx *db.Tx) error {
		elsewhere, err := nodes.Elsewhere(tx, strings.TrimSpace(string(own)))
		for _, r := range elsewhere {
			away[r.Owner+"/"+r.Name] = true
		}
		return err
	}); err != nil {
		return err
	}
	found, err := repo.Compare(ctx, d, host, func(r codehost.Repo) bool { return away[r.String()] })
	if err != nil {
		return err
	}
	folder := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)+".git") }
	for _, name := range found.Lost {
		fmt.Fprintf(b.Out, "%s: its folder is not there.\n  Put %s back from a copy. Until then it answers 503.\n", name, folder(name))
	}
	for _, o := range found.Older {
		fmt.Fprintf(b.Out, "%s: its folder is older than the database: the commit %s of %s is not there.\n"+
			"  Push %s from a clone that has it, or put %s back from a younger copy.\n"+
			"  Or go on with what is there: the next push to %s, or merge into it, counts, and until then open pull requests stay as they were.\n",
			o.Repo, o.Commit, o.Branch, o.Branch, folder(o.Repo), o.Branch)
	}
	for _, name := range found.Unknown {
		fmt.Fprintf(b.Out, "%s: the database does not know it.\n  Its owner makes it known with `yardmaster repo add`, or any push to it; "+
			"or take %s away.\n", name, folder(name))
	}
	for _, name := range found.Newer {
		fmt.Fprintf(b.Out, "%s: its folder has pushes that the database does not know of.\n  Nothing is to be done: the server records them when "+
			"it starts, and each hour.\n", name)
	}
	if n := len(found.Lost) + len(found.Older) + len(found.Unknown); n > 0 {
		return fmt.Errorf("%d repositories are not of the time of the database", n)
	}
	fmt.Fprintln(b.Out, "The folders of repositories fit the database.")
	return nil
}
