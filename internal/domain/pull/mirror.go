package pull

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
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
		return s.compareQueued(ctx, r, e.Pull)
	}
	return err
}

// recorded is what is stored of a pull request that a host tells of.
type recorded struct {
	Title   string
	Body    string
	State   string
	HeadSHA string `db:"head_sha"`
	BaseRef string
	Draft   bool
	Labels  db.JSON[[]string]
	HostAt  int64
}

// says tells whether a pull request of a host is recorded as it is.
func (known recorded) says(p codehost.Pull) bool {
	state := Closed
	switch {
	case p.Merged:
		state = Merged
	case p.Open:
		state = Open
	}
	return known.State == state && known.Title == p.Title && known.Body == p.Body && known.HeadSHA == p.HeadSHA &&
		known.BaseRef == p.BaseRef && known.Draft == p.Draft && slices.Equal(known.Labels.V, p.Labels)
}

// same tells whether nothing was recorded in between.
func (known recorded) same(before recorded) bool {
	return known.HostAt == before.HostAt && known.State == before.State && known.Title == before.Title && known.Body == before.Body &&
		known.HeadSHA == before.HeadSHA && known.BaseRef == before.BaseRef && known.Draft == before.Draft &&
		slices.Equal(known.Labels.V, before.Labels.V)
}

// hostChanged records what a host says of a pull request. If that may be older than what
// is recorded, hostChanged changes nothing, and answers what is recorded. asked is the
// last answer, after which the host was asked: e is newer, unless something was recorded
// since; nil: the host was not asked.
func (s *Service) hostChanged(ctx context.Context, r repo.Ref, e codehost.PullChanged, asked *recorded) (told *recorded, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		told = nil
		known, ok, err := byNumber.Maybe(tx, tx.Account, r.ID, e.Pull.Number)
		if err == nil && !ok {
			known, ok, err = s.appeared(tx, r, e)
		}
		if err != nil || !ok {
			return err
		}
		pr, ok, err := lock(tx, known)
		if err != nil || !ok || db.Micros(e.Pull.UpdatedAt) < pr.HostAt {
			return err
		}
		if db.Micros(e.Pull.UpdatedAt) == pr.HostAt {
			now, err := recordedOf.One(tx, tx.Account, pr.ID)
			if err != nil {
				return err
			}
			if !e.Pull.Merged && !now.says(e.Pull) && (asked == nil || !now.same(*asked)) {
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
		opening, err := openingOf.One(tx, tx.Account, r.ID, p.HeadRef)
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
	if prID, known, err = byNumber.Maybe(tx, tx.Account, r.ID, p.Number); err != nil || known {
		return prID, known, err
	}
	return "", false, s.add(tx, r, p)
}

// add records a pull request of somebody else that is open.
func (s *Service) add(tx *db.Tx, r repo.Ref, p codehost.Pull) error {
	kind, babysit := ByPerson, BabysitOff
	if p.Author.Bot {
		kind = ByBot
	}
	if r.Policy.Watches(p.Author.Bot, p.Labels) && !p.Fork {
		babysit = BabysitWatching
	}
	prID := id.New()
	if _, err := insert.Exec(tx, insertArgs{
		ID: prID, AccountID: tx.Account, RepoID: r.ID, Number: p.Number, Title: p.Title, Body: p.Body, URL: s.url(prID), State: Open,
		HeadRef: headRef(p), BaseRef: p.BaseRef, HeadSHA: p.HeadSHA, BaseSHA: p.BaseSHA, AuthorKind: kind, CreatedAt: tx.Micros(),
		Babysit: babysit,
	}); err != nil {
		return err
	}
	pr, _, err := read(tx, prID)
	if err != nil {
		return err
	}
	pr.FactsWant++
	pr.noted(p)
	if err := saveWith(tx, pr, &p.Body); err != nil {
		return err
	}
	data := openedData{HeadSHA: p.HeadSHA, Number: p.Number}
	if err := openedEvent.Record(tx, event.Subject{ID: prID, RepoID: r.ID}, data); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.PullTopic)
	return s.check(tx, r, pr)
}

// headRef is the branch of a pull request; that of a fork is the ref which the host
// keeps of its head in the repository.
func headRef(p codehost.Pull) string {
	if p.Fork {
		return fmt.Sprintf("refs/pull/%d/head", p.Number)
	}
	return p.HeadRef
}

// noted sets the fields of a pull request that decide nothing.
func (r *row) noted(p codehost.Pull) {
	r.Title, r.HostURL, r.HostAt, r.Author, r.Draft, r.Fork = p.Title, p.URL, db.Micros(p.UpdatedAt), p.Author.Login, p.Draft, p.Fork
	if r.Labels.V = slices.Clone(p.Labels); r.Labels.V == nil {
		r.Labels.V = []string{}
	}
}

// mirror brings a locked pull request up to what its host says.
func (s *Service) mirror(tx *db.Tx, r repo.Ref, pr *row, e codehost.PullChanged) error {
	p, who := e.Pull, HostLabel(e.By)
	wasDraft := pr.Draft
	if pr.noted(p); wasDraft && !p.Draft && p.Open && pr.State == Open {
		pr.FactsWant++ // its review is begun once its facts are read
	}
	if err := saveWith(tx, pr, &p.Body); err != nil {
		return err
	}
	switch {
	case p.Merged && pr.State == Open:
		return s.mergedThere(tx, pr, p, who)
	case !p.Open && pr.State == Open:
		return s.close(tx, pr, ClosedAtHost, who)
	case p.Open && pr.State == Closed && pr.ClosedWhy != ClosedCancelled:
		return s.reopenRow(tx, r, pr, p.HeadSHA, who)
	case !p.Open || pr.State != Open:
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
	return s.move(tx, pr)
}
