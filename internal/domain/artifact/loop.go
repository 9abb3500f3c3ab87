package artifact

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"yardmaster/internal/blob"
	"yardmaster/internal/db"
	"yardmaster/internal/observe"
)

const (
	passEvery = 5 * time.Second
	atOnce    = 20
	// hold is how long a node has an artifact to look at.
	hold = 5 * time.Minute
	// firstLook is how long after its beginning an upload is looked for, longestWait the
	// longest pause between two looks.
	firstLook   = 5 * time.Second
	longestWait = 10 * time.Minute
)

// Loop finds the uploads that arrive, and ends artifacts whose time is over, until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	t := time.NewTicker(passEvery)
	defer t.Stop()
	for {
		in, end := observe.Pass(ctx, "artifact.keep")
		if err := s.Pass(in); err != nil && ctx.Err() == nil {
			observe.Complain(in, s.Logger, "look after artifacts", err)
		}
		end()
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// tidier is a store of objects that removes what killed uploads have left.
type tidier interface {
	Tidy(ctx context.Context, before time.Time) error
}

// Pass is one pass of Loop. A failure for one artifact does not keep Pass from the others: it
// is looked at again.
func (s *Service) Pass(ctx context.Context) error {
	if t, can := s.Objects.(tidier); can {
		var before time.Time
		if err := s.tidy.Do(ctx, s.DB, func(tx *db.Tx) error { before = tx.Now.Add(-abandoned); return nil }); err != nil {
			return err
		}
		if !before.IsZero() {
			if err := t.Tidy(ctx, before); err != nil {
				observe.Complain(ctx, s.Logger, "tidy up cut-off uploads", err)
			}
		}
	}
	for ctx.Err() == nil {
		var now time.Time
		due, err := db.Claim(ctx, s.DB, anyDue, func(tx *db.Tx) ([]row, error) {
			now = tx.Now
			return takeDue.All(tx, tx.Micros(), db.Micros(tx.Now.Add(hold)), atOnce)
		})
		if err != nil || len(due) == 0 {
			return err
		}
		for _, r := range due {
			if err := s.attend(db.WithAccount(ctx, r.AccountID), r, now); err != nil {
				observe.Complain(ctx, s.Logger, "look after an artifact", err, slog.String("artifact", r.ID))
			}
		}
		if len(due) < atOnce {
			return nil
		}
	}
	return nil
}

// attend does what is due about an artifact.
func (s *Service) attend(ctx context.Context, r row, now time.Time) error {
	late := !now.Before(r.CreatedAt.Add(abandoned))
	if r.DeletedAt != nil {
		return s.finish(ctx, r)
	}
	if !now.Before(r.ExpiresAt) {
		return s.end(ctx, r, expired)
	}
	if r.StoredAt != nil {
		return s.DB.Write(ctx, func(tx *db.Tx) error { _, err := putOff.Exec(tx, r.ID, r.ExpiresAt); return err })
	}
	there, err := s.look(ctx, r)
	switch {
	case err != nil: // it is due again after hold
		return err
	case there:
		return s.arrive(ctx, r)
	case late:
		return s.end(ctx, r, expired)
	}
	wait := min(max(firstLook, now.Sub(r.CreatedAt)/2), longestWait)
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := putOff.Exec(tx, r.ID, tx.Now.Add(wait))
		return err
	})
}

// Why an artifact was deleted.
const (
	asked   = "asked"
	expired = "expired"
)

// end deletes an artifact: its row shows no more, then the object goes, and the row when no
// upload can bring the object back. What is interrupted in between, Loop goes on with.
func (s *Service) end(ctx context.Context, r row, why string) error {
	hidden := false
	if err := s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		hidden, err = conceal(tx, r.ID, why)
		return err
	}); err != nil || !hidden {
		return err
	}
	return s.finish(ctx, r)
}

// conceal has an artifact of tx.Account show no more; false if there is none, or if it came
// to be kept meanwhile. One that never showed goes without an event.
func conceal(tx *db.Tx, artifactID, why string) (bool, error) {
	r, ok, err := anywhere.Maybe(tx, tx.Account, artifactID)
	if err != nil || !ok || r.DeletedAt != nil || why == expired && r.StoredAt != nil && tx.Now.Before(r.ExpiresAt) {
		return false, err
	}
	if _, err := hide.Exec(tx, r.ID, tx.Now); err != nil || r.StoredAt == nil {
		return true, err
	}
	return true, deletedEvent.Record(tx, r.subject(), deletedData{Name: r.Name, Size: r.Size, Why: why})
}

// finish deletes the object of an artifact that shows no more, and then its row.
func (s *Service) finish(ctx context.Context, r row) error {
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := s.Objects.Delete(limited, r.key())
	said := err
	if errors.Is(err, blob.ErrHeld) {
		said = nil // it is done later
	}
	return errors.Join(said, s.DB.Write(ctx, func(tx *db.Tx) error {
		last := r.CreatedAt.Add(abandoned)
		switch {
		case err != nil:
			_, err := putOff.Exec(tx, r.ID, tx.Now.Add(longestWait))
			return err
		case tx.Now.Before(last):
			_, err := empty.Exec(tx, r.ID, last)
			return err
		}
		_, err := remove.Exec(tx, r.ID)
		return err
	}))
}
