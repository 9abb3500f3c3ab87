package closure

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
)

const (
	// patience is how long boxes that do not answer are waited for.
	patience = 2 * time.Minute
	// again is the time between two looks at boxes.
	again = time.Second
)

// ladder has each step tried until it is done: an account is deleted wholly or not at all.
var ladder = due.Ladder{First: 5 * time.Second, Longest: 15 * time.Minute}

func load(tx *db.Tx, key string) (row, bool, error) { return byAccount.Maybe(tx, key) }

func open(tx *db.Tx, most int) ([]due.Open, error) { return openRows.All(tx, most) }

// noneOpen: the rest of a departure is begun in the transaction that removes the rows.
func noneOpen(*db.Tx, int) ([]due.Open, error) { return nil, nil }

// work goes one step further, and looks again until the rows are gone.
func (s *Service) work(ctx context.Context, j due.Job[row]) due.Outcome {
	if j.Row.BegunAt == nil {
		return due.Decide(func(tx *db.Tx) (due.Outcome, error) { return s.begin(tx, j.Key) })
	}
	told, err := s.endWork(ctx, j)
	if err != nil {
		return s.failed(ctx, j.Key, "cancel the work of an account that is deleted", "Its work could not be cancelled.", err)
	}
	if !told && j.Row.LastError != "" {
		return due.Wait(again).With(func(tx *db.Tx) error { _, err := fails.Exec(tx, j.Key, ""); return err })
	} else if !told {
		return due.Wait(again)
	}
	if err := s.Payments.End(ctx, j.Key); err != nil {
		return s.failed(ctx, j.Key, "end the subscriptions of an account that is deleted",
			"Its subscriptions could not be ended at the provider of payments.", err)
	}
	if err := s.Work.Release(ctx, j.Key); err != nil {
		return s.failed(ctx, j.Key, "release the boxes of an account that is deleted", "Its boxes could not be revoked.", err)
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		id, err := s.Departures.Remove(tx, j.Key)
		if err != nil {
			return err
		}
		s.files.Add(tx, id, due.Entry{})
		j.Renew(tx)
		return nil
	})
	if err != nil {
		return s.failed(ctx, j.Key, "remove an account that is deleted", "What is stored of it could not be removed.", err)
	}
	return due.Done(nil)
}

// begin is the end of the time in which a deletion can be taken back.
func (s *Service) begin(tx *db.Tx, account string) (due.Outcome, error) {
	r, ok, err := byAccount.Maybe(tx, account)
	switch {
	case err != nil:
		return due.Outcome{}, err
	case !ok:
		return due.Done(nil), nil
	case tx.Now.Before(r.EndsAt):
		return due.WaitUntil(r.EndsAt), nil
	}
	if _, err := begin.Exec(tx, account, tx.Now); err != nil {
		return due.Outcome{}, err
	}
	return due.Wait(0), begunEvent.Record(tx, event.Subject{ID: account, Account: account}, event.None{})
}

// endWork cancels what is under way. It tells whether the boxes that had some know, or were waited for.
func (s *Service) endWork(ctx context.Context, j due.Job[row]) (told bool, err error) {
	for more := true; more && err == nil; {
		err = s.DB.Write(ctx, func(tx *db.Tx) error {
			err := tx.As(j.Key, func() (err error) { more, err = s.Work.End(tx); return err })
			j.Renew(tx)
			return err
		})
	}
	if err != nil {
		return false, err
	}
	err = s.DB.Read(ctx, func(tx *db.Tx) error {
		if tx.Now.Sub(*j.Row.BegunAt) >= patience {
			told = true
			return nil
		}
		return tx.As(j.Key, func() (err error) { told, err = s.Work.Told(tx); return err })
	})
	return told, err
}

// failed has a step tried again. The log has the cause; the account is told which step it is.
func (s *Service) failed(ctx context.Context, account, what, told string, err error) due.Outcome {
	observe.Complain(ctx, s.Logger, what, err, slog.String("account", account))
	return due.Again(err).With(func(tx *db.Tx) error { _, no := fails.Exec(tx, account, told); return no })
}

func (s *Service) loadFiles(tx *db.Tx, id string) (none struct{}, ok bool, err error) {
	ok, err = s.Departures.Left(tx, id)
	return none, ok, err
}

func (s *Service) workFiles(ctx context.Context, j due.Job[struct{}]) due.Outcome {
	if err := s.Departures.Finish(ctx, j.Key); err != nil {
		observe.Complain(ctx, s.Logger, "remove the files of an account that is deleted", err, slog.String("departure", j.Key))
		return due.Again(err)
	}
	return due.Done(nil)
}
