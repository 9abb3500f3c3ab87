package dashboard

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	passEvery = time.Minute
	atOnce    = 100

	queued = "queued"
)

type enqueueIn struct {
	Confirm bool   `json:"confirm" doc:"must be true"`
	Why     string `json:"why" minLength:"1" maxLength:"500" example:"The board of deliveries was corrected." doc:"why, for the platform's record"`
}

// Sync is a pass that will be made.
type Sync struct {
	_     struct{} `doc:"A pass over the built-in boards that will be made." schema:"BuiltinDashboardSync"`
	JobID string   `json:"job_id" format:"uuid" doc:"id of the pass; the platform's record names it"`
	State string   `json:"state" enum:"queued" doc:"where it stands"`
}

func (s *Service) enqueue(ctx context.Context, in enqueueIn) (out Sync, err error) {
	if !in.Confirm {
		return out, fault.Field("confirm", "must be true")
	}
	flying := fault.Reason("import_in_flight", "A pass that was asked for is queued or running.")
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		if _, open, err := syncOpen.Maybe(tx); err != nil {
			return err
		} else if open {
			return flying
		}
		out = Sync{JobID: id.New(), State: queued}
		by := policy.From(ctx).Label()
		if _, err := addSync.Exec(tx, out.JobID, by, tx.Now); err != nil {
			return err
		}
		s.queue.Add(tx, out.JobID, due.Entry{})
		return requestedEvent.Operated(tx, event.Subject{ID: out.JobID}, whyData{Why: in.Why}, nil)
	})
	if db.IsUnique(err) {
		err = flying
	}
	return out, err
}

// Loop makes the built-in boards of accounts that have those of another version of the program, or
// none, until ctx ends. New accounts come with theirs (Placed).
func (s *Service) Loop(ctx context.Context) error {
	observe.Every(ctx, "dashboard.sync", passEvery, func(ctx context.Context) {
		if err := s.Pass(ctx); err != nil {
			observe.Complain(ctx, s.Logger, "make the built-in boards", err)
		}
	})
	return nil
}

// Pass is one pass of Loop.
func (s *Service) Pass(ctx context.Context) error {
	return s.walk(ctx, false, func(tx *db.Tx, last string) ([]string, error) { return behind.All(tx, version, last, atOnce) })
}

// work makes a pass that was asked for.
func (s *Service) work(ctx context.Context, j due.Job[string]) due.Outcome {
	err := s.walk(ctx, true, func(tx *db.Tx, last string) ([]string, error) { return accounts.All(tx, last, atOnce) })
	if err != nil {
		observe.Complain(ctx, s.Logger, "make the built-in boards", err)
		return due.Again(err)
	}
	return due.Done(func(tx *db.Tx) error { _, err := endSync.Exec(tx, j.Key, tx.Now); return err })
}

// walk makes the boards of accounts, a transaction each.
func (s *Service) walk(ctx context.Context, each bool, next func(tx *db.Tx, last string) ([]string, error)) error {
	for last := ""; ; {
		var some []string
		if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
			some, err = next(tx, last)
			return err
		}); err != nil {
			return err
		}
		for _, account := range some {
			err := s.DB.Write(db.WithAccount(ctx, account), func(tx *db.Tx) error { return s.sync(tx, account, each) })
			if err != nil && !db.IsUnique(err) { // somebody made a board of that name; the next pass finds another
				return err
			}
			last = account
		}
		if len(some) < atOnce {
			return nil
		}
	}
}
