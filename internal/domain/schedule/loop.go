package schedule

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	sweep  = 10 * time.Second
	atOnce = 100 // schedules that are read at once
)

// Loop files what is due until ctx ends. Several nodes may run Loop at once: an
// occurrence is filed and left behind in one transaction, which locks its schedule.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	s.Hub.Sweep(ctx, "schedules.sweep", event.ScheduleTopic, sweep, s.Pass)
	return nil
}

// Pass files what is due now.
func (s *Service) Pass(ctx context.Context) {
	for at := (dueArgs{Most: atOnce}); ctx.Err() == nil; {
		var rows []dueRow
		err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			at.Now = tx.Micros()
			rows, err = due.All(tx, at)
			return err
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "read which schedules are due", err)
			return
		}
		for _, r := range rows {
			at.At, at.ID = r.NextAt, r.ID
			if err := s.occur(db.WithAccount(ctx, r.AccountID), r.ID); err != nil {
				observe.Complain(ctx, s.Logger, "file the ask of a schedule", err, slog.String("id", r.ID))
			}
		}
		if len(rows) < atOnce {
			return
		}
	}
}

// occur files the occurrence of a schedule that is due, or skips it. Of several that are
// due, those that are late are skipped as one.
func (s *Service) occur(ctx context.Context, scheduleID string) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		r, ok, err := lockID.Maybe(tx, tx.Account, scheduleID)
		if err != nil || !ok || r.NextAt == nil || r.NextAt.After(tx.Now) {
			return err // another node was here, or a person
		}
		if limit := tx.Now.Add(-lateness); r.NextAt.Before(limit) {
			if err := s.skip(tx, &r, Late); err != nil {
				return err
			}
			if r.NextAt, err = r.after(limit.Add(-time.Microsecond)); err != nil {
				return err
			}
		}
		if r.NextAt != nil && !r.NextAt.After(tx.Now) {
			if err := s.fire(tx, &r); err != nil {
				return err
			}
		}
		_, err = update.Exec(tx, r)
		return err
	})
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
