package issue

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
	"yardmaster/internal/policy"
)

// retry is how a host is asked again that did not answer.
var retry = due.Ladder{First: 2 * time.Second, Longest: longest}

// Walk has the open issues of a repository read from its host.
func (s *Service) Walk(tx *db.Tx, r repo.Ref) error {
	s.walks.Drop(tx, r.ID)
	s.walks.Add(tx, r.ID, due.Entry{Account: r.AccountID})
	_, err := beginWalk.Exec(tx, r.ID, tx.Micros())
	return err
}

// sweeping is the context of calls that nobody waits for.
func sweeping(ctx context.Context) context.Context {
	return codehost.WithUrgency(policy.With(ctx, policy.Actor{Credential: policy.System}), codehost.ForSweeps)
}

// again has another try made at what a host did not answer.
func (s *Service) again(ctx context.Context, about slog.Attr, err error) due.Outcome {
	s.Logger.WarnContext(ctx, "a code host did not answer about issues", about, slog.Any("error", err))
	if busy, is := errors.AsType[*codehost.BusyError](err); is && busy.After > longest {
		err = due.Later(err, longest)
	}
	return due.Again(err)
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

// walk reads one page of open issues after the other. The cursor is stored after a page, so that
// another node goes on there.
func (s *Service) walk(ctx context.Context, j due.Job[string]) due.Outcome {
	ctx = sweeping(ctx)
	r, forge, ok, err := s.reach(ctx, j.Key)
	for cursor := j.Row; err == nil && ok; {
		if cursor, err = s.page(ctx, j, r, forge, cursor); cursor == "" {
			break
		}
	}
	if err != nil {
		return s.again(ctx, slog.String("repo", j.Key), err)
	}
	return due.Done(func(tx *db.Tx) error { _, err := endWalk.Exec(tx, j.Key); return err })
}

// page records one page of a walk, and answers the cursor of the next.
func (s *Service) page(ctx context.Context, j due.Job[string], r repo.Ref, f codehost.Forge, cursor string) (next string, err error) {
	call, cancel := context.WithTimeout(ctx, patience)
	page, next, err := f.IssuesSince(call, r.HostRepo(), time.Time{}, true, cursor)
	cancel()
	if err != nil {
		return "", err
	}
	page = slices.DeleteFunc(page, func(i codehost.Issue) bool { return i.Pull })
	for some := range slices.Chunk(page, batch) {
		if err := s.DB.Write(ctx, func(tx *db.Tx) error { j.Renew(tx); return s.record(tx, r, some) }); err != nil {
			return "", err
		}
	}
	return next, s.DB.Write(ctx, func(tx *db.Tx) error { j.Renew(tx); _, err := walkTo.Exec(tx, j.Key, next); return err })
}

// record records some issues of a walk.
func (s *Service) record(tx *db.Tx, r repo.Ref, some []codehost.Issue) error {
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
}

// work reads an issue again, or files its ask, or both. What becomes due meanwhile takes the
// issue from whoever works on it.
func (s *Service) work(ctx context.Context, j due.Job[row]) due.Outcome {
	ctx = sweeping(ctx)
	d, about := j.Row, slog.String("issue", j.Key)
	r, forge, ok, err := s.reach(ctx, d.RepoID)
	if err != nil {
		return s.again(ctx, about, err)
	}
	var read *codehost.Issue
	gone, trusted := false, false
	if ok && d.Reading {
		i, _, err := forge.Issue(ctx, r.HostRepo(), d.number(), "")
		switch {
		case errors.Is(err, codehost.ErrNotFound):
			gone = true
		case err != nil:
			return s.again(ctx, about, err)
		default:
			read = &i
		}
	}
	if ok && d.Filing && !gone {
		if trusted, err = s.trusted(ctx, forge, r, d, j.Tries); err != nil {
			return s.again(ctx, about, err)
		}
	}
	return due.Done(func(tx *db.Tx) error {
		now, there, err := lockID.Maybe(tx, tx.Account, d.ID)
		if err != nil || !there {
			return err
		}
		now.Reading, now.Filing = false, false
		if err := s.save(tx, now); err != nil {
			return err
		}
		switch {
		case gone:
			return s.lose(tx, d.ID)
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
		now.Reading = true
		s.look(tx, now, 0)
		return now, s.save(tx, now)
	}
	if err := s.apply(tx, r, now, codehost.IssueChanged{Issue: read}, true); err != nil {
		return now, err
	}
	return lockID.One(tx, tx.Account, d.ID)
}

// trusted tells whether the person behind an ask may write to the repository. The host
// answers that now; no payload is believed. A host that does not answer makes nobody
// trusted.
func (s *Service) trusted(ctx context.Context, f codehost.Forge, r repo.Ref, d row, tries int) (bool, error) {
	may, err := f.Permission(ctx, r.HostRepo(), d.Voucher)
	if busy, is := errors.AsType[*codehost.BusyError](err); is && tries < maxTries {
		return false, busy
	}
	if err != nil {
		s.Logger.WarnContext(ctx, "the permission of a person is not known", slog.String("issue", d.ID), slog.Any("error", err))
	}
	return err == nil && may >= codehost.PermitWrite, nil
}
