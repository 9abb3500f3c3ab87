package artifact

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/observe"
)

const (
	tidyEvery = 5 * time.Minute // how often Loop looks whether an hour is over
	// firstLook is how long after its beginning an upload is looked for, longestWait the
	// longest pause between two looks.
	firstLook   = 5 * time.Second
	longestWait = 10 * time.Minute
)

// retry is how the store of objects is asked again that did not answer.
var retry = due.Ladder{First: firstLook, Longest: longestWait}

// tidier is a store of objects that removes what killed uploads have left.
type tidier interface {
	Tidy(ctx context.Context, before time.Time) error
}

// Loop has the store of objects tidied up each hour, until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	store, can := s.Objects.(tidier)
	if !can {
		return nil
	}
	observe.Every(ctx, "artifact.tidy", tidyEvery, func(ctx context.Context) {
		if err := s.tidyUp(ctx, store); err != nil {
			observe.Complain(ctx, s.Logger, "tidy up cut-off uploads", err)
		}
	})
	return nil
}

func (s *Service) tidyUp(ctx context.Context, store tidier) error {
	var before time.Time
	err := s.tidy.Do(ctx, s.DB, func(tx *db.Tx) error { before = tx.Now.Add(-abandoned); return nil })
	if err != nil || before.IsZero() {
		return err
	}
	return store.Tidy(ctx, before)
}

// attended is an artifact, and when it was read.
type attended struct {
	row
	now time.Time
}

func load(tx *db.Tx, artifactID string) (attended, bool, error) {
	r, ok, err := anywhere.Maybe(tx, tx.Account, artifactID)
	return attended{r, tx.Now}, ok, err
}

// attend does what is due about an artifact: it notes that an upload has arrived or gives it
// up, or ends what has expired or was deleted.
func (s *Service) attend(ctx context.Context, j due.Job[attended]) due.Outcome {
	r, age := j.Row, j.Row.now.Sub(j.Row.CreatedAt)
	switch {
	case r.DeletedAt != nil:
		return s.finish(ctx, r.row)
	case !r.now.Before(r.ExpiresAt):
		return s.end(ctx, r.row)
	case r.StoredAt != nil:
		return due.WaitUntil(r.ExpiresAt)
	}
	switch there, err := s.look(ctx, r.row); {
	case err != nil:
		return s.fails(ctx, r.row, err)
	case there:
		return due.WaitUntil(r.ExpiresAt).With(r.arrive)
	case age >= abandoned:
		return s.end(ctx, r.row)
	}
	return due.Wait(min(max(firstLook, age/2), longestWait))
}

func (s *Service) fails(ctx context.Context, r row, err error) due.Outcome {
	if errors.Is(err, blob.ErrHeld) {
		return due.Wait(longestWait)
	}
	observe.Complain(ctx, s.Logger, "look after an artifact", err, slog.String("artifact", r.ID))
	return due.Again(err)
}

// Why an artifact was deleted.
const (
	asked   = "asked"
	expired = "expired"
)

// end deletes an artifact whose time is over: its row shows no more, then the object goes, and
// the row when no upload can bring the object back. What is interrupted in between, the queue
// goes on with.
func (s *Service) end(ctx context.Context, r row) due.Outcome {
	hidden := false
	if err := s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		hidden, err = s.conceal(tx, r.ID, expired)
		return err
	}); err != nil {
		return s.fails(ctx, r, err)
	}
	if !hidden { // it came to be kept meanwhile, or somebody has deleted it
		return due.Wait(firstLook)
	}
	return s.finish(ctx, r)
}

// conceal has an artifact of tx.Account show no more; false if there is none, or if it came
// to be kept meanwhile. One that never showed goes without an event.
func (s *Service) conceal(tx *db.Tx, artifactID, why string) (bool, error) {
	r, ok, err := lockAny.Maybe(tx, tx.Account, artifactID)
	if err != nil || !ok || r.DeletedAt != nil || why == expired && r.StoredAt != nil && tx.Now.Before(r.ExpiresAt) {
		return false, err
	}
	if why == asked { // in the place of the wait for its end
		s.queue.Drop(tx, r.ID)
		s.queue.Add(tx, r.ID, due.Entry{Account: tx.Account})
	}
	if _, err := hide.Exec(tx, r.ID, tx.Now); err != nil || r.StoredAt == nil {
		return true, err
	}
	return true, deletedEvent.Record(tx, r.subject(), deletedData{Name: r.Name, Size: r.Size, Why: why})
}

// erase deletes the object of an artifact that shows no more, which then takes no room. It may
// be called twice.
func (s *Service) erase(ctx context.Context, r row) error {
	call, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := s.Objects.Delete(call, r.key()); err != nil {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error { _, err := empty.Exec(tx, r.ID); return err })
}

// finish deletes the object of an artifact that shows no more, and then its row.
func (s *Service) finish(ctx context.Context, r row) due.Outcome {
	if err := s.erase(ctx, r); err != nil {
		return s.fails(ctx, r, err)
	}
	return due.Decide(func(tx *db.Tx) (due.Outcome, error) {
		if last := r.CreatedAt.Add(abandoned); tx.Now.Before(last) {
			return due.WaitUntil(last), nil
		}
		_, err := remove.Exec(tx, r.ID)
		return due.Done(nil), err
	})
}
