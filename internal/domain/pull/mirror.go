package pull

import (
	"context"
	"errors"
	"fmt"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
)

// mostAsked is how often a host is asked about a pull request for one delivery. Each time
// but the first, something as new was recorded while the host was asked.
const mostAsked = 4

// errOpening puts off what a host says of a pull request that the server is opening: the
// answer of the host, which gives the number, is not recorded yet.
var errOpening = &codehost.BusyError{After: 2 * time.Second, Cause: errors.New("the pull request is being opened")}

// HostChanged records what a host says of a pull request. What is older than what is
// recorded changes nothing. What is as new, and says something else, may be older all the
// same, because hosts count whole seconds and deliveries come in any order: then the host
// is asked. A pull request of a person is recorded as well. HostChanged fails with a
// *codehost.BusyError while the server is opening the pull request.
func (s *Service) HostChanged(ctx context.Context, r repo.Ref, e codehost.PullChanged) error {
	told, err := s.hostChanged(ctx, r, e, nil)
	for asked := 0; err == nil && told != nil; asked++ {
		if asked == mostAsked {
			return &codehost.BusyError{After: time.Second, Cause: fmt.Errorf("pull request #%d changes all the time", e.Pull.Number)}
		}
		var forge codehost.Forge
		if forge, err = s.Hosts.Forge(r.HostRepo()); err != nil {
			return err
		}
		switch now, _, failure := forge.Pull(ctx, r.HostRepo(), e.Pull.Number, ""); {
		case failure == nil:
			e.Pull = now
		case !errors.Is(failure, codehost.ErrCannot) && !errors.Is(failure, codehost.ErrNotFound):
			return failure
		}
		told, err = s.hostChanged(ctx, r, e, told)
	}
	if err == nil && e.Pull.Merged {
		return s.CompareQueued(ctx, r, e.Pull)
	}
	return err
}

// hostChanged records what a host says of a pull request. If that may be older than what
// is recorded, hostChanged changes nothing, and answers what is recorded. asked is the
// last answer, after which the host was asked: e is newer, unless something was recorded
// since; nil: the host was not asked.
func (s *Service) hostChanged(ctx context.Context, r repo.Ref, e codehost.PullChanged,
	asked *record.Recorded) (told *record.Recorded, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		told = nil
		known, ok, err := record.ByNumber.Maybe(tx, tx.Account, r.ID, e.Pull.Number)
		if err == nil && !ok {
			known, ok, err = s.appeared(tx, r, e)
		}
		if err != nil || !ok {
			return err
		}
		pr, ok, err := record.Lock(tx, known)
		if err != nil || !ok || db.Micros(e.Pull.UpdatedAt) < pr.HostAt {
			return err
		}
		if db.Micros(e.Pull.UpdatedAt) == pr.HostAt {
			now, err := record.RecordedOf.One(tx, tx.Account, pr.ID)
			if err != nil {
				return err
			}
			if !e.Pull.Merged && !now.Says(e.Pull) && (asked == nil || !now.Same(*asked)) {
				told = &now
				return nil
			}
		}
		return s.mirror(tx, r, pr, e)
	})
	return told, err
}

// appeared records a pull request that the server did not open, once it is open. If another
// transaction has recorded it meanwhile, appeared answers the id. One that the server is
// opening is left to the answer of the host: appeared fails with errOpening, unless the
// server itself has caused what the host tells.
func (s *Service) appeared(tx *db.Tx, r repo.Ref, e codehost.PullChanged) (prID string, known bool, err error) {
	p := e.Pull
	if p.Author.Own {
		opening, err := record.OpeningOf.One(tx, tx.Account, r.ID, p.HeadRef)
		if err == nil && opening && !e.By.Own && e.Action != codehost.ActionUnsaid {
			err = errOpening
		}
		return "", false, err
	}
	if !p.Open || !r.Enabled {
		return "", false, nil
	}
	if err := repo.Lock(tx, r.ID); err != nil {
		return "", false, err
	}
	if prID, known, err = record.ByNumber.Maybe(tx, tx.Account, r.ID, p.Number); err != nil || known {
		return prID, known, err
	}
	return "", false, s.add(tx, r, p)
}

// add records a pull request of somebody else that is open.
func (s *Service) add(tx *db.Tx, r repo.Ref, p codehost.Pull) error {
	kind, babysit := record.ByPerson, record.BabysitOff
	if p.Author.Bot {
		kind = record.ByBot
	}
	if r.Policy.Watches(p.Author.Bot, p.Labels) && !p.Fork {
		babysit = record.BabysitWatching
	}
	prID := id.New()
	if _, err := record.Insert.Exec(tx, record.InsertArgs{
		ID: prID, AccountID: tx.Account, RepoID: r.ID, Number: p.Number, Title: p.Title, Body: p.Body, URL: s.url(prID), State: record.Open,
		HeadRef: headRef(p), BaseRef: p.BaseRef, HeadSHA: p.HeadSHA, BaseSHA: p.BaseSHA, AuthorKind: kind, CreatedAt: tx.Micros(),
		Babysit: babysit,
	}); err != nil {
		return err
	}
	pr, _, err := record.Read(tx, prID)
	if err != nil {
		return err
	}
	pr.FactsWant++
	pr.Noted(p)
	if err := record.SaveWith(tx, pr, &p.Body); err != nil {
		return err
	}
	data := record.OpenedData{HeadSHA: p.HeadSHA, Number: p.Number}
	if err := record.OpenedEvent.Record(tx, event.Subject{ID: prID, RepoID: r.ID}, data); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	return s.Check(tx, r, pr)
}

// headRef is the branch of a pull request; that of a fork is the ref which the host
// keeps of its head in the repository.
func headRef(p codehost.Pull) string {
	if p.Fork {
		return fmt.Sprintf("refs/pull/%d/head", p.Number)
	}
	return p.HeadRef
}

// mirror brings a locked pull request up to what its host says.
func (s *Service) mirror(tx *db.Tx, r repo.Ref, pr *record.Pull, e codehost.PullChanged) error {
	p, who := e.Pull, HostLabel(e.By)
	wasDraft := pr.Draft
	if pr.Noted(p); wasDraft && !p.Draft && p.Open && pr.State == record.Open {
		pr.FactsWant++ // its review is begun once its facts are read
	}
	if err := record.SaveWith(tx, pr, &p.Body); err != nil {
		return err
	}
	switch {
	case p.Merged && pr.State == record.Open:
		return s.mergedThere(tx, pr, p, who)
	case !p.Open && pr.State == record.Open:
		return s.close(tx, pr, record.ClosedAtHost, who)
	case p.Open && pr.State == record.Closed && pr.ClosedWhy != record.ClosedCancelled:
		return s.reopenRow(tx, r, pr, p.HeadSHA, who)
	case !p.Open || pr.State != record.Open:
		return nil
	}
	if p.BaseRef != pr.BaseRef {
		if err := s.retarget(tx, pr, p.BaseRef); err != nil {
			return err
		}
	}
	if p.HeadSHA != pr.HeadSHA {
		pr.PushedBy = &who
		s.Hub.Notify(tx, event.PullTopic)
		return s.moveHead(tx, r, pr, p.HeadSHA)
	}
	if e.Action == codehost.ActionDequeued {
		return s.Queue.Expelled(tx, r, pr.ID, e.Exit, e.Says)
	}
	if err := s.rewatch(tx, r, pr); err != nil {
		return err
	}
	return s.Move(tx, pr)
}
