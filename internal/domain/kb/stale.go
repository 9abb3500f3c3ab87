package kb

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

// mostNamed bounds the pages that one event names.
const mostNamed = 50

// retry is how a comparison that failed is made again.
var retry = due.Ladder{First: 10 * time.Second, Longest: 5 * time.Minute}

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
		s.queue.Add(tx, repoID, due.Entry{Account: tx.Account})
	}
	return err
}

// work compares the files of the pages of a repository.
func (s *Service) work(ctx context.Context, j due.Job[int64]) due.Outcome {
	ctx = codehost.WithUrgency(policy.With(ctx, policy.Actor{Credential: policy.System}), codehost.ForSweeps)
	out, err := s.compare(ctx, j.Key, j.Row)
	if err != nil {
		observe.Complain(ctx, s.Logger, "compare the files of pages", err, slog.String("repo", j.Key))
		return due.Again(err)
	}
	return out
}

// compare finds the pages of a repository of which files have changed on its default branch.
// asked is when that was last asked for.
func (s *Service) compare(ctx context.Context, repoID string, asked int64) (due.Outcome, error) {
	var r repo.Ref
	var pages []citedRow
	var known bool
	var at indexRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if r, known, err = repo.ByIDAnywhere(tx, repoID); err != nil {
			return err
		}
		if at, err = readIndex.One(tx, repoID); err != nil {
			return err
		}
		pages, err = allCited.All(tx, repoID)
		return err
	})
	if err != nil {
		return due.Outcome{}, err
	}
	var found comparison
	if known && r.Gone == "" && len(pages) > 0 {
		if found, err = s.look(ctx, r, pages); err != nil {
			return due.Outcome{}, err
		}
	}
	return due.Next(func(tx *db.Tx) (more bool, err error) {
		now, err := lockIndex.One(tx, repoID)
		if err != nil || now.Writes != at.Writes { // a page was written meanwhile: look again
			return true, err
		}
		if err := s.record(tx, found, repoID); err != nil {
			return false, err
		}
		n, err := done.Exec(tx, repoID, asked)
		return n == 0, err
	}), nil
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
func (s *Service) record(tx *db.Tx, c comparison, repoID string) error {
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
	if err := s.keepSoon(tx, repoID); err != nil {
		return err
	}
	return outdatedEvent.Record(tx, event.Subject{ID: repoID, RepoID: repoID},
		outdatedData{Commit: c.head, Pages: len(slugs), Slugs: slugs[:min(len(slugs), mostNamed)]})
}
