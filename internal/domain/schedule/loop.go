package schedule

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

// again is the wait after an occurrence that could not be filed.
const again = 10 * time.Second

func open(tx *db.Tx, most int) ([]due.Open, error) { return openKeys.All(tx, most) }

// order has the next occurrence of a schedule filed at its time, and none that it had before.
func (s *Service) order(tx *db.Tx, r row) {
	s.queue.Drop(tx, r.ID)
	if r.NextAt != nil {
		s.queue.Add(tx, r.ID, due.Entry{Account: tx.Account, At: *r.NextAt})
	}
}

// occur files the occurrence of a schedule that is due, or skips it. Of several that are
// due, those that are late are skipped as one. It is filed and left behind in one transaction,
// which locks its schedule.
func (s *Service) occur(ctx context.Context, j due.Job[struct{}]) due.Outcome {
	return due.Decide(func(tx *db.Tx) (due.Outcome, error) {
		next, err := s.occurs(tx, j.Key)
		switch {
		case err != nil:
			observe.Complain(ctx, s.Logger, "file the ask of a schedule", err, slog.String("id", j.Key))
			return due.Outcome{}, err
		case next == nil:
			return due.Done(nil), nil
		}
		return due.Wait(next.Sub(tx.Now)), nil // by the clock that says what is due
	})
}

// occurs is occur in a transaction. It answers when the schedule is due again; nil: never.
func (s *Service) occurs(tx *db.Tx, scheduleID string) (next *time.Time, err error) {
	r, ok, err := lockID.Maybe(tx, tx.Account, scheduleID)
	if err != nil || !ok || r.NextAt == nil || r.NextAt.After(tx.Now) {
		return r.NextAt, err // a person was here
	}
	if limit := tx.Now.Add(-lateness); r.NextAt.Before(limit) {
		if err := s.skip(tx, &r, Late); err != nil {
			return nil, err
		}
		if r.NextAt, err = r.after(limit.Add(-time.Microsecond)); err != nil {
			return nil, err
		}
	}
	if r.NextAt != nil && !r.NextAt.After(tx.Now) {
		if err := s.fire(tx, &r); err != nil {
			return nil, err
		}
	}
	_, err = update.Exec(tx, r)
	return r.NextAt, err
}

// fire files the occurrence at r.NextAt if nothing stands in its way, and moves on to the
// one behind it.
func (s *Service) fire(tx *db.Tx, r *row) error {
	outcome, err := s.obstacle(tx, *r)
	if err == nil && outcome == "" && r.WhenBusy == Skip && r.LastAskID != nil {
		var busy bool
		if busy, err = s.Asks.Busy(tx, *r.LastAskID); busy {
			outcome = Busy
		}
	}
	if err != nil {
		return err
	}
	if outcome != "" {
		if err := s.skip(tx, r, outcome); err != nil {
			return err
		}
	} else if err := s.fileDue(tx, r); err != nil {
		return err
	}
	if outcome == PersonLeft {
		why := PersonLeft
		r.PausedWhy, r.NextAt = &why, nil
		return PausedEvent.Record(tx, r.subject(), pausedData{Title: r.Title, Why: why})
	}
	r.NextAt, err = r.after(*r.NextAt)
	return err
}

// fileDue files the occurrence at r.NextAt.
func (s *Service) fileDue(tx *db.Tx, r *row) error {
	at, outcome := *r.NextAt, Filed
	scopes, _ := policy.ParseScopes(r.Scopes.V)
	askID, err := s.file(tx, *r, at.UTC().Format(time.RFC3339), r.UserID, scopes)
	if err != nil {
		return err
	}
	r.LastAt, r.LastOutcome, r.LastAskID = &at, &outcome, &askID
	return filedEvent.Record(tx, r.subject(), filedData{AskID: askID, Occurrence: at, Title: r.Title})
}

// skip leaves out the occurrence at r.NextAt. It records the first of several with the
// same reason.
func (s *Service) skip(tx *db.Tx, r *row, why string) error {
	at, again := *r.NextAt, r.LastOutcome != nil && *r.LastOutcome == why
	r.LastAt, r.LastOutcome = &at, &why
	if again {
		return nil
	}
	return skippedEvent.Record(tx, r.subject(), skippedData{Occurrence: at, Title: r.Title, Why: why})
}

func (r row) subject() event.Subject {
	about := event.Subject{ID: r.ID}
	if r.RepoID != nil {
		about.RepoID = *r.RepoID
	}
	return about
}
