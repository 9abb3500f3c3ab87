package issue

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

// Walk has the open issues of a repository read from its host.
func Walk(tx *db.Tx, r repo.Ref) error {
	_, err := beginWalk.Exec(tx, r.ID, tx.Micros())
	return err
}

// Loop does what is due until ctx ends. Several nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.Hub.Sweep(ctx, "issues.sweep", topic, every, s.Pass)
	return nil
}

// Pass does what is due.
func (s *Service) Pass(ctx context.Context) {
	ctx = codehost.WithUrgency(ctx, codehost.ForSweeps)
	for ctx.Err() == nil {
		var walks []walkRow
		due, err := db.Claim(ctx, s.DB, anyDue, func(tx *db.Tx) (due []row, err error) {
			until := db.Micros(tx.Now.Add(hold))
			if walks, err = takeWalks.All(tx, tx.Micros(), until, 4); err != nil {
				return nil, err
			}
			return takeDue.All(tx, tx.Micros(), until, atOnce)
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "take the issues that are due", err)
			return
		}
		if len(due)+len(walks) == 0 {
			return
		}
		for _, d := range due {
			if err := s.work(db.WithAccount(ctx, d.AccountID), d); err != nil {
				observe.Complain(ctx, s.Logger, "work on an issue", err, slog.String("issue", d.ID))
			}
		}
		for _, w := range walks {
			if err := s.walk(ctx, w); err != nil {
				observe.Complain(ctx, s.Logger, "walk through the issues of a repository", err, slog.String("repo", w.RepoID))
			}
		}
	}
}

// reach is the repository of a row, and what its host keeps beside git; false if the
// repository is off, or the host does not let the server in.
func (s *Service) reach(ctx context.Context, repoID string) (r repo.Ref, f codehost.Forge, ok bool, err error) {
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		r, ok, err = repo.Reachable(tx, repoID)
		return err
	})
	if err != nil || !ok {
		return r, nil, false, err
	}
	f, err = s.Hosts.Forge(r.HostRepo())
	return r, f, err == nil && f.Can(codehost.KeepIssues), err
}

// wait is the time after which something is tried again that the host did not do.
func wait(tries int64, err error) time.Duration {
	after := min(time.Second<<min(tries, 10), longest)
	if busy, is := errors.AsType[*codehost.BusyError](err); is {
		after = min(max(after, busy.After), longest)
	}
	return after
}

// walk reads one page of open issues after the other. The cursor is stored with the
// last issues of a page, so that another node goes on there.
func (s *Service) walk(ctx context.Context, w walkRow) error {
	r, forge, ok, err := s.reach(ctx, w.RepoID)
	ctx = db.WithAccount(ctx, r.AccountID)
	held, cursor := w.DueAt, w.Cursor
	for err == nil && ok && ctx.Err() == nil {
		var page []codehost.Issue
		call, cancel := context.WithTimeout(ctx, hold/2)
		page, cursor, err = forge.IssuesSince(call, r.HostRepo(), time.Time{}, true, cursor)
		cancel()
		if err != nil {
			break
		}
		page = slices.DeleteFunc(page, func(i codehost.Issue) bool { return i.Pull })
		for some := range slices.Chunk(page, batch) {
			if err := s.record(ctx, r, w.RepoID, &held, some); err != nil {
				return err
			}
		}
		var lost bool
		err = s.DB.Write(ctx, func(tx *db.Tx) error {
			next := new(db.Micros(tx.Now.Add(hold)))
			if cursor == "" {
				next = nil
			}
			n, err := walkTo.Exec(tx, walkArgs{RepoID: w.RepoID, Cursor: cursor, DueAt: next, Held: held})
			if lost = n == 0; err == nil && next != nil {
				held = *next
			}
			return err
		})
		if err != nil || lost || cursor == "" {
			return err
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, s.DB.Write(ctx, func(tx *db.Tx) error {
		a := walkArgs{RepoID: w.RepoID, Cursor: w.Cursor, Held: held, Tries: w.Tries}
		if a.Cursor = cursor; err != nil {
			a.DueAt = new(db.Micros(tx.Now.Add(wait(w.Tries, err))))
			a.Cursor = w.Cursor
		}
		_, err := walkTo.Exec(tx, a)
		return err
	}))
}

// errLost ends a walk that another node has taken.
var errLost = errors.New("issue: another node walks")

// record records some issues of a walk.
func (s *Service) record(ctx context.Context, r repo.Ref, repoID string, held *int64, some []codehost.Issue) error {
	var next int64
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		next = db.Micros(tx.Now.Add(hold))
		if n, err := holdWalk.Exec(tx, repoID, *held, next); err != nil || n == 0 {
			return errors.Join(err, errLost)
		}
		for _, i := range some {
			known, fresh, err := s.known(tx, r, i, true)
			if err != nil {
				return err
			}
			if !fresh && (db.Micros(i.UpdatedAt) < known.HostAt || same(known, r, i)) {
				continue
			}
			if err := s.apply(tx, r, known, codehost.IssueChanged{Issue: i}, false); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		*held = next
	}
	return err
}

// work reads an issue again, or files its ask, or both.
func (s *Service) work(ctx context.Context, d row) error {
	r, forge, ok, err := s.reach(ctx, d.RepoID)
	if errors.Is(err, codehost.ErrUnknownHost) {
		return s.later(ctx, d, err)
	}
	if err != nil {
		return err
	}
	var read *codehost.Issue
	gone, trusted := false, false
	if ok && d.Reading {
		i, _, err := forge.Issue(ctx, r.HostRepo(), d.number(), "")
		switch {
		case errors.Is(err, codehost.ErrNotFound):
			gone = true
		case err != nil:
			return s.later(ctx, d, err)
		default:
			read = &i
		}
	}
	if ok && d.Filing && !gone {
		if trusted, err = s.trusted(ctx, forge, r, d); err != nil {
			return s.later(ctx, d, err)
		}
	}
	if ctx.Err() != nil {
		return nil // a node takes the issue again after the hold
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		now, there, err := lockID.Maybe(tx, tx.Account, d.ID)
		if err != nil || !there || now.DueAt == nil || *now.DueAt != *d.DueAt {
			return err // something else has become due, or another node has it
		}
		now.DueAt, now.Reading, now.Filing, now.Tries = nil, false, false, 0
		if err := save(tx, now); err != nil {
			return err
		}
		switch {
		case gone:
			_, err := setGone.Exec(tx, tx.Account, d.ID, tx.Now)
			return err
		case !ok:
			return nil
		}
		if read != nil {
			if now, err = s.reread(tx, r, d, now, *read); err != nil {
				return err
			}
		}
		// The policy, or the state, may have changed while the permission was asked for.
		if !d.Filing || now.State != Open || now.GoneAt != nil || now.Triage != None || !r.Policy.Triages(now.Labels.V) {
			return nil
		}
		now.SeenTitle, now.SeenBody, now.Filing = d.SeenTitle, d.SeenBody, false
		if !now.Reading {
			now.DueAt = nil
		}
		if trusted && r.Policy.HandsOff() {
			return s.handByPolicy(tx, r, now)
		}
		_, err = s.file(tx, r, now, trusted, "")
		return err
	})
}

// reread records an issue as its host has answered, and answers the row. d is the row
// before the host was asked. What was recorded meanwhile, and is newer, stays; if it is as
// new, the host is asked again.
func (s *Service) reread(tx *db.Tx, r repo.Ref, d, now row, read codehost.Issue) (row, error) {
	at := db.Micros(read.UpdatedAt)
	switch {
	case at < now.HostAt || now.HostAt != d.HostAt && same(now, r, read):
		return now, nil
	case at == now.HostAt && now.HostAt != d.HostAt:
		now.Reading, now.DueAt = true, new(tx.Micros())
		s.Hub.Notify(tx, topic)
		return now, save(tx, now)
	}
	if err := s.apply(tx, r, now, codehost.IssueChanged{Issue: read}, true); err != nil {
		return now, err
	}
	return lockID.One(tx, tx.Account, d.ID)
}

// trusted tells whether the person behind an ask may write to the repository. The host
// answers that now; no payload is believed. A host that does not answer makes nobody
// trusted.
func (s *Service) trusted(ctx context.Context, f codehost.Forge, r repo.Ref, d row) (bool, error) {
	may, err := f.Permission(ctx, r.HostRepo(), d.Voucher)
	if busy, is := errors.AsType[*codehost.BusyError](err); is && d.Tries < maxTries {
		return false, busy
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "the permission of a person is not known", slog.String("issue", d.ID), slog.Any("error", err))
	}
	return err == nil && may >= codehost.PermitWrite, nil
}

// later puts off an issue whose host did not answer.
func (s *Service) later(ctx context.Context, d row, cause error) error {
	s.Logger.WarnContext(ctx, "a code host did not answer about an issue", slog.String("issue", d.ID), slog.Any("error", cause))
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := again.Exec(tx, d.ID, *d.DueAt, db.Micros(tx.Now.Add(wait(d.Tries, cause))))
		return err
	})
}
