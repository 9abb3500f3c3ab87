package repo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
)

// Apart are repositories of the built-in host whose folder and row are of different times, as where
// a copy of one was put back without the other. Each list is by name.
type Apart struct {
	Lost    []string // there is no folder
	Older   []Older  // the folder lacks what the row names
	Newer   []string // the folder has pushes that the row does not know of
	Unknown []string // there is no row
}

// Older is a repository whose folder lacks a commit.
type Older struct{ Repo, Branch, Commit string }

func (o Older) String() string {
	return fmt.Sprintf("%s (its branch %s had the commit %.12s)", o.Repo, o.Branch, o.Commit)
}

// lacking finds a commit that a row names and a folder lacks; ok is false if there is none. A folder
// loses none by a push: what was replaced stays for hours, and is recorded meanwhile.
func lacking(ctx context.Context, host codehost.Host, r row, now codehost.Info, moved []codehost.RefUpdate) (o Older, ok bool, err error) {
	name := r.ref().HostRepo()
	asked := map[string]string{}
	if r.HeadSHA != "" && r.HeadSHA != now.HeadSHA {
		asked[r.DefaultBranch] = r.HeadSHA
	}
	for _, u := range moved {
		if branch, is := strings.CutPrefix(u.Ref, "refs/heads/"); is {
			asked[branch] = u.Old
		}
	}
	for branch, sha := range asked {
		_, err := host.Commit(ctx, name, sha)
		switch {
		case errors.Is(err, codehost.ErrNotFound):
			if !ok || branch < o.Branch {
				o, ok = Older{name.String(), branch, sha}, true
			}
		case err != nil:
			return o, false, fmt.Errorf("look for the commit %.12s: %w", sha, err)
		}
	}
	return o, ok, nil
}

// strangers are the repositories that have a folder and no row.
func strangers(stored []codehost.Repo, rows []row) (names []string) {
	known := map[string]bool{}
	for i := range rows {
		known[rows[i].ref().HostRepo().String()] = true
	}
	for _, r := range stored {
		if !known[r.String()] {
			names = append(names, r.String())
		}
	}
	return names
}

// Compare holds the folders of the built-in host against the rows, and changes nothing. Repositories
// of which elsewhere is true have their folder on another node.
func Compare(ctx context.Context, d *db.DB, host interface {
	codehost.Host
	Folders
}, elsewhere func(codehost.Repo) bool) (a Apart, err error) {
	var rows []row
	if err := d.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = allAt.All(tx, codehost.BuiltIn)
		return err
	}); err != nil {
		return a, err
	}
	stored, err := host.Stored()
	if err != nil {
		return a, err
	}
	a.Unknown = strangers(stored, rows)
	for _, r := range rows {
		name := r.ref().HostRepo()
		if r.LastActivityAt == nil || elsewhere(name) {
			continue
		}
		now, err := host.Info(ctx, name)
		switch {
		case errors.Is(err, codehost.ErrNotFound), errors.Is(err, codehost.ErrLost):
			a.Lost = append(a.Lost, name.String())
			continue
		case err != nil:
			return a, fmt.Errorf("%s: %w", name, err)
		}
		older, is, err := lacking(ctx, host, r, now, nil)
		switch {
		case err != nil:
			return a, err
		case is:
			a.Older = append(a.Older, older)
		case r.HeadSHA != "" && r.HeadSHA != now.HeadSHA:
			a.Newer = append(a.Newer, name.String())
		}
	}
	return a, nil
}

const advice = "`yardmaster restore --compare` says what can be done"

// say writes into the log what a pass has found apart; lost ones are said by miss.
func (s *Service) say(ctx context.Context, a Apart) {
	if n := len(a.Older); n > 0 {
		s.Logger.ErrorContext(ctx, "the folders of repositories are older than the database: "+advice,
			slog.Int("older", n), slog.Any("repositories", a.Older[:min(n, mostNamed)]))
	}
	if n := len(a.Unknown); n > 0 {
		s.Logger.ErrorContext(ctx, "the database does not know repositories that have folders: "+advice,
			slog.Int("unknown", n), slog.Any("repositories", a.Unknown[:min(n, mostNamed)]))
	}
	if n := len(a.Newer); n > 0 {
		s.Logger.InfoContext(ctx, "folders of repositories had pushes that the database did not know of; they are recorded now",
			slog.Int("newer", n), slog.Any("repositories", a.Newer[:min(n, mostNamed)]))
	}
}

// FoundApart is what the last pass has found apart and could not mend.
func (s *Service) FoundApart() (a Apart) {
	if found := s.apart.Load(); found != nil {
		a = *found
	}
	return a
}
