package tracker

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/linear"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	sweepEvery = 10 * time.Second
	atOnce     = 8
	kept       = 180 * 24 * time.Hour // of issues that are over
	maxError   = 500                  // bytes
)

// Loop opens issues until ctx ends. Several nodes may run Loop at once.
func (s *Service) Loop(ctx context.Context) error {
	ctx = policy.With(ctx, policy.Actor{Credential: policy.System})
	var tidy db.Hourly
	s.Hub.Sweep(ctx, "trackers.sweep", event.TrackerTopic, sweepEvery, func(ctx context.Context) {
		s.Pass(ctx)
		err := tidy.Do(ctx, s.DB, func(tx *db.Tx) error {
			_, err := forget.Exec(tx, db.Micros(tx.Now.Add(-kept)))
			return err
		})
		if err != nil {
			observe.Complain(ctx, s.Logger, "tidy up", err)
		}
	})
	return nil
}

// Pass opens the issues that are due.
func (s *Service) Pass(ctx context.Context) {
	err := db.Drain(ctx, s.DB, anyDue, func(tx *db.Tx) ([]issueRow, error) {
		return take.All(tx, tx.Micros(), db.Micros(tx.Now.Add(hold)), atOnce)
	}, func(i issueRow) {
		if err := s.carry(db.WithAccount(ctx, i.AccountID), i); err != nil {
			observe.Complain(ctx, s.Logger, "open an issue at Linear", err, slog.String("id", i.ID))
		}
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, "take the issues that are due at Linear", err)
	}
}

// errGone says that the account has disconnected Linear.
var errGone = errors.New("the account has disconnected Linear")

// carry tries to open one issue, and records the outcome.
func (s *Service) carry(ctx context.Context, i issueRow) error {
	made, connection, failure := s.create(ctx, i)
	if ctx.Err() != nil {
		return nil // a node takes the issue again after the hold
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		a := endArgs{ID: i.ID, Tries: i.Tries, State: Opened, Now: tx.Micros()}
		if failure == nil {
			a.Identifier, a.URL = &made.Identifier, &made.URL
			n, err := end.Exec(tx, a)
			if err != nil || n == 0 {
				return err
			}
			if err := noteKey(tx, connection, nil); err != nil {
				return err
			}
			return openedEvent.Record(tx, event.Subject{ID: i.ID, RepoID: i.RepoID}, openedData{Identifier: made.Identifier, URL: made.URL})
		}
		why := failure.Error()
		why = why[:min(len(why), maxError)]
		var after time.Duration
		if busy, ok := errors.AsType[*linear.BusyError](failure); ok {
			after = busy.After
		}
		if errors.Is(failure, linear.ErrKey) {
			after = longest // or until another key is given, see hurry
			if err := noteKey(tx, connection, &why); err != nil {
				return err
			}
		}
		due, final := next(i, tx.Now, after)
		_, refused := errors.AsType[*linear.RefusedError](failure)
		if !final && !refused && !errors.Is(failure, errGone) {
			_, err := again.Exec(tx, againArgs{ID: i.ID, Tries: i.Tries, DueAt: db.Micros(due), Error: why})
			return err
		}
		a.State, a.Error = Failed, &why
		n, err := end.Exec(tx, a)
		if err != nil || n == 0 {
			return err
		}
		if err := GivenUp.Send(tx, Failure{RepoID: i.RepoID, Title: i.Title, Why: why}); err != nil {
			return err
		}
		return failedEvent.Record(tx, event.Subject{ID: i.ID, RepoID: i.RepoID}, failedData{Reason: why})
	})
}

// noteKey notes why Linear refuses the key of a connection, or that it does not.
func noteKey(tx *db.Tx, was row, why *string) error {
	if was.Error == nil && why == nil {
		return nil
	}
	_, err := setError.Exec(tx, tx.Account, was.Sealed, why)
	return err
}

// create opens an issue at Linear, unless an earlier try did whose answer was lost.
func (s *Service) create(ctx context.Context, i issueRow) (made linear.Issue, connection row, err error) {
	ok := false
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		connection, ok, err = byAccount.Maybe(tx, tx.Account)
		return err
	})
	if err == nil && !ok {
		err = errGone
	}
	if err != nil {
		return made, connection, err
	}
	key, err := s.open(connection)
	if err != nil {
		return made, connection, err
	}
	if i.Tries > 1 {
		made, there, err := s.Linear.Find(ctx, key, i.ID)
		if err != nil || there {
			return made, connection, err
		}
	}
	made, err = s.Linear.Create(ctx, key, linear.Draft{ID: i.ID, TeamID: connection.TeamID, Title: i.Title, Description: i.Body})
	if _, refused := errors.AsType[*linear.RefusedError](err); refused {
		// Another node may have opened it at this moment, and Linear takes an id once.
		if found, there, lost := s.Linear.Find(ctx, key, i.ID); lost == nil && there {
			return found, connection, nil
		}
	}
	return made, connection, err
}
