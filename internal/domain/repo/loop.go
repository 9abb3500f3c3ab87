package repo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
)

// Cadences of Loop.
const (
	reconcileEvery = time.Hour
	maintainEvery  = 12 * time.Hour // with the grace of the host, what was deleted is gone within a day
	refreshEvery   = 10 * time.Second
	// refreshHold is how long a node has a policy file to read for: then it is
	// due again, as it is after a failure.
	refreshHold = time.Minute
)

// Loop looks after the repositories of the built-in host until ctx ends. At
// start and every hour it records what a crash between git and the database
// kept from being recorded; twice a day each repository is packed. A policy file
// that RefreshSoon named is read at once. Several nodes may do it at once: what
// is recorded is recorded once.
func (s *Service) Loop(ctx context.Context) error {
	var refreshing sync.WaitGroup
	refreshing.Go(func() { s.Hub.Sweep(ctx, "repos.sweep", event.RepoTopic, refreshEvery, s.RefreshDue) })
	defer refreshing.Wait()
	packed := map[string]time.Time{}
	observe.Every(ctx, "repo.reconcile", reconcileEvery, func(ctx context.Context) { s.Pass(ctx, packed) })
	return nil
}

// Pass reconciles every repository, and packs those that were packed twelve hours
// ago, as packed notes.
func (s *Service) Pass(ctx context.Context, packed map[string]time.Time) {
	var rows []row
	var now time.Time
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		now = tx.Now
		rows, err = allAt.All(tx, codehost.BuiltIn)
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "list repositories", err)
		return
	}
	s.miss(ctx, rows)
	var apart Apart
	if apart.Unknown, err = s.unknown(ctx, rows); err != nil {
		observe.Complain(ctx, s.Logger, "look for folders of repositories", err)
	}
	for _, r := range rows {
		if ctx.Err() != nil {
			return
		}
		name := r.ref().HostRepo()
		if err := s.reconcile(ctx, r, &apart); err != nil {
			observe.Complain(ctx, s.Logger, "reconcile "+name.String(), err)
		}
		last, seen := packed[r.ID]
		if !seen {
			packed[r.ID] = now // a start is a bad moment to pack
			continue
		}
		if now.Sub(last) >= maintainEvery {
			packed[r.ID] = now
			if err := s.maintain(ctx, r.ID, name, now); err != nil {
				observe.Complain(ctx, s.Logger, "maintain "+name.String(), err)
			}
		}
	}
	s.say(ctx, apart)
	s.apart.Store(&apart)
}

// maintain packs a repository, and then gives back the contents of Git LFS that nothing in it names.
func (s *Service) maintain(ctx context.Context, repoID string, name codehost.Repo, now time.Time) error {
	if err := s.Folders.Maintain(ctx, name, now); err != nil {
		return err
	}
	return s.Contents.Tidy(ctx, repoID, func(ctx context.Context, oids []string) ([]string, error) {
		return s.Folders.Pointed(ctx, name, oids)
	})
}

// unknown are the folders of repositories that have no row, of which none was made meanwhile.
func (s *Service) unknown(ctx context.Context, rows []row) (names []string, err error) {
	stored, err := s.Folders.Stored()
	if err != nil || len(strangers(stored, rows)) == 0 {
		return nil, err
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = allAt.All(tx, codehost.BuiltIn)
		return err
	})
	return strangers(stored, rows), err
}

// RefreshSoon has the policy file of a repository of tx.Account read again once
// tx has committed, by whichever node is first.
func (s *Service) RefreshSoon(tx *db.Tx, repoID string) error {
	_, err := setRefreshDue.Exec(tx, tx.Account, repoID, tx.Now)
	s.Hub.Notify(tx, event.RepoTopic)
	return err
}

// RefreshDue reads the policy files that are due. One that cannot be read is due
// again after refreshHold; that of a repository which the host lacks is left to
// Pass.
func (s *Service) RefreshDue(ctx context.Context) {
	var any bool
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		any, err = anyRefreshDue.One(tx, tx.Now)
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "look for policy files that are due", err)
	}
	if err != nil || !any {
		return
	}
	var due []refreshRow
	err = s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		due, err = takeRefreshDue.All(tx, tx.Now, tx.Now.Add(refreshHold))
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "take the policy files that are due", err)
	}
	for _, r := range due {
		name := codehost.Repo{Host: r.Host, ID: r.HostRepoID, Owner: r.Owner, Name: r.Name}
		err := s.Refresh(ctx, name)
		if err == nil || errors.Is(err, codehost.ErrNotFound) {
			err = s.DB.Write(ctx, func(tx *db.Tx) error {
				_, err := refreshed.Exec(tx, r.ID, r.RefreshDue)
				return err
			})
		}
		if err != nil {
			observe.Complain(ctx, s.Logger, "the policy file of "+name.String()+" was not read again after a merge", err)
		}
	}
}

// FindLost looks for the folders of all repositories that were pushed to, and
// names those that are not there in the log.
func (s *Service) FindLost(ctx context.Context) error {
	var rows []row
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = allAt.All(tx, codehost.BuiltIn)
		return err
	})
	if err == nil {
		s.miss(ctx, rows)
	}
	return err
}

// mostNamed bounds the lost repositories that one line of the log names.
const mostNamed = 50

func (s *Service) miss(ctx context.Context, rows []row) {
	there := pushed(rows)
	lost := s.Folders.Missing(there)
	if len(lost) == 0 {
		return
	}
	var names []string
	for _, r := range lost[:min(len(lost), mostNamed)] {
		names = append(names, r.String())
	}
	s.Logger.ErrorContext(ctx, "the folders of repositories are not there: put git/ back from a copy that fits the database",
		slog.Int("lost", len(lost)), slog.Int("of", len(there)), slog.Any("repositories", names))
}

// reconcile records the heads of pull requests, and the policy file, where
// they are not what was recorded last. Of a folder that is older than the row it records
// nothing, and notes it in apart.
func (s *Service) reconcile(ctx context.Context, r row, apart *Apart) error {
	name := r.ref().HostRepo()
	var heads map[string]string
	err := s.DB.Read(db.WithAccount(ctx, r.AccountID), func(tx *db.Tx) (err error) {
		heads, err = s.Pulls.OpenHeads(tx, r.ID)
		return err
	})
	if err != nil {
		return err
	}
	if len(heads) > 0 {
		err := s.DB.Write(db.WithAccount(ctx, r.AccountID), func(tx *db.Tx) error { return Unsure.Send(tx, r.ID) })
		if err != nil {
			return err
		}
	}
	host, err := s.Hosts.Of(name)
	if err != nil {
		return err
	}
	e := codehost.PushEvent{Repo: name, Who: "reconciled"}
	for branch, known := range heads {
		sha, err := host.Head(ctx, name, branch)
		if errors.Is(err, codehost.ErrNotFound) {
			continue // deleted: the pull request shows its last head
		}
		if err != nil {
			return fmt.Errorf("head of %s: %w", branch, err)
		}
		if sha != known {
			e.Updates = append(e.Updates, codehost.RefUpdate{Ref: "refs/heads/" + branch, Old: known, New: sha})
		}
	}
	now, err := look(ctx, host, codehost.PushEvent{Repo: name})
	if errors.Is(err, codehost.ErrNotFound) {
		return nil // installed, but never pushed to
	}
	if err != nil {
		return err
	}
	switch o, older, err := lacking(ctx, host, r, now.info, e.Updates); {
	case err != nil:
		return err
	case older:
		apart.Older = append(apart.Older, o)
		return nil
	case len(e.Updates) > 0 || r.HeadSHA != "" && r.HeadSHA != now.info.HeadSHA:
		apart.Newer = append(apart.Newer, name.String())
	}
	if len(e.Updates) == 0 && now.info.DefaultBranch == r.DefaultBranch && now.file.SHA == r.PolicySHA && now.near == r.PolicyNear &&
		*now.way == r.InTheWay && (now.info.HeadSHA == "") == r.Unborn && textOf(now.modules) == textOf(r.Gitmodules) {
		if r.HeadSHA == now.info.HeadSHA {
			return nil
		}
		if r.HeadSHA == "" { // from before it was recorded
			return s.DB.Write(ctx, func(tx *db.Tx) error {
				_, err := noteHead.Exec(tx, r.ID, now.info.HeadSHA)
				return err
			})
		}
	}
	return s.OnPush(ctx, e)
}
