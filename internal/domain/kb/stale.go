package kb

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	topic = "kb"
	every = time.Minute
	// holdFor is how long a node has a repository to compare: then it is due again, as it is
	// after a failure.
	holdFor = 5 * time.Minute
	// mostNamed bounds the pages that one event names.
	mostNamed = 50
)

// Pushed has the files of the pages of a repository compared, if its default branch moved.
func (s *Service) Pushed(tx *db.Tx, e event.Event[repo.Push]) error {
	if e.Data.Branch != e.Data.Repo.DefaultBranch {
		return nil
	}
	return s.lookSoon(tx, e.Data.Repo.ID)
}

// Moved has the files of the pages of a repository compared.
func (s *Service) Moved(tx *db.Tx, repoID string) error { return s.lookSoon(tx, repoID) }

func (s *Service) lookSoon(tx *db.Tx, repoID string) error {
	n, err := setDue.Exec(tx, repoID, tx.Micros())
	if n > 0 {
		s.Hub.Notify(tx, topic)
	}
	return err
}

// Loop compares files until ctx ends. Several nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.Hub.Sweep(ctx, "kb.sweep", topic, every, s.Pass)
	return nil
}

// Pass compares the files of the repositories that are due.
func (s *Service) Pass(ctx context.Context) {
	ctx = codehost.WithUrgency(ctx, codehost.ForSweeps)
	err := db.Drain(ctx, s.DB, anyDue, func(tx *db.Tx) ([]dueRow, error) {
		return takeDue.All(tx, tx.Micros(), db.Micros(tx.Now.Add(holdFor)))
	}, func(d dueRow) {
		if err := s.compare(ctx, d); err != nil {
			observe.Complain(ctx, s.Logger, "compare the files of pages", err, slog.String("repo", d.RepoID))
		}
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "take the repositories whose pages are due", err)
	}
}

// compare finds the pages of a repository of which files have changed on its default branch.
func (s *Service) compare(ctx context.Context, d dueRow) error {
	var r repo.Ref
	var pages []citedRow
	var known bool
	var at indexRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if r, known, err = repo.ByIDAnywhere(tx, d.RepoID); err != nil {
			return err
		}
		if at, err = readIndex.One(tx, d.RepoID); err != nil {
			return err
		}
		pages, err = allCited.All(tx, d.RepoID)
		return err
	})
	if err != nil {
		return err
	}
	var found comparison
	if known && r.Gone == "" && len(pages) > 0 {
		if found, err = s.look(ctx, r, pages); err != nil {
			return err
		}
	}
	return s.DB.Write(db.WithAccount(ctx, r.AccountID), func(tx *db.Tx) error {
		now, err := lockIndex.One(tx, d.RepoID)
		if err != nil {
			return err
		}
		if now.Writes != at.Writes { // a page was written meanwhile: look again
			return s.lookSoon(tx, d.RepoID)
		}
		if err := found.record(tx, d.RepoID); err != nil {
			return err
		}
		_, err = done.Exec(tx, d.RepoID, d.DueAt)
		return err
	})
}

// comparison is what a look at the default branch found.
type comparison struct {
	head  string
	seen  []string            // commits after which no file of a page that is not in stale has changed
	stale map[string][]string // by slug: the files that have changed
}

// look compares the files of pages with those at the head of the default branch.
func (s *Service) look(ctx context.Context, r repo.Ref, pages []citedRow) (c comparison, err error) {
	host, err := s.Hosts.Of(r.HostRepo())
	if err != nil {
		return c, err
	}
	c.head, err = host.Head(ctx, r.HostRepo(), r.DefaultBranch)
	if errors.Is(err, codehost.ErrNotFound) {
		return comparison{}, nil // nothing was pushed, or the branch is gone
	}
	if err != nil {
		return c, err
	}
	c.stale = map[string][]string{}
	changes := map[string]func(string) bool{}
	for _, p := range pages {
		if p.SeenSHA == c.head {
			continue
		}
		has, known := changes[p.SeenSHA]
		if !known {
			if has, err = changedSince(ctx, host, r, p.SeenSHA, c.head); err != nil {
				return c, err
			}
			changes[p.SeenSHA] = has
			c.seen = append(c.seen, p.SeenSHA)
		}
		var files []string
		for _, f := range p.Files.V {
			if has(f) {
				files = append(files, f)
			}
		}
		if len(files) > 0 {
			c.stale[p.Slug] = files
		}
	}
	return c, nil
}

// changedSince tells which files differ between two commits. From a commit that is not there,
// or has no ancestor in common with the other, all do.
func changedSince(ctx context.Context, host codehost.Host, r repo.Ref, from, to string) (func(string) bool, error) {
	if from == "" {
		return func(string) bool { return false }, nil
	}
	c, err := host.Compare(ctx, r.HostRepo(), from, to)
	if errors.Is(err, codehost.ErrNotFound) || err == nil && c.MergeBase == "" {
		return func(string) bool { return true }, nil
	}
	return func(path string) bool {
		_, found := slices.BinarySearch(c.Paths, path)
		return found
	}, err
}

// record notes what was found in a repository of tx.Account.
func (c comparison) record(tx *db.Tx, repoID string) error {
	var slugs []string
	for slug, files := range c.stale {
		slugs = append(slugs, slug)
		if _, err := setStale.Exec(tx, staleArgs{repoID, slug, c.head, db.JSON[[]string]{V: files}, tx.Now}); err != nil {
			return err
		}
	}
	for _, seen := range c.seen {
		if _, err := setSeen.Exec(tx, repoID, seen, c.head); err != nil {
			return err
		}
	}
	if len(slugs) == 0 {
		return nil
	}
	slices.Sort(slugs)
	return outdatedEvent.Record(tx, event.Subject{ID: repoID, RepoID: repoID},
		outdatedData{Commit: c.head, Pages: len(slugs), Slugs: slugs[:min(len(slugs), mostNamed)]})
}
