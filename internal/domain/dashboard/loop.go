package dashboard

import (
	"context"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
	"yardmaster/internal/policy"
)

const (
	passEvery = 15 * time.Second
	atOnce    = 100
	// hold is how long a node has a pass that was asked for; another one begins it again then.
	hold = 10 * time.Minute

	queued = "queued"
)

// topic is of passes that were asked for.
const topic = "dashboard.syncs"

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
		s.Hub.Notify(tx, topic)
		return requestedEvent.Operated(tx, event.Subject{ID: out.JobID}, whyData{Why: in.Why}, nil)
	})
	if db.IsUnique(err) {
		err = flying
	}
	return out, err
}

// Loop makes the built-in boards of new accounts, and the passes that were asked for, until ctx
// ends.
func (s *Service) Loop(ctx context.Context) error {
	s.Hub.Sweep(ctx, "dashboard.sync", topic, passEvery, func(ctx context.Context) {
		if err := s.Pass(ctx); err != nil && ctx.Err() == nil {
			observe.Complain(ctx, s.Logger, "make the built-in boards", err)
		}
	})
	return nil
}

// Pass is one pass of Loop.
func (s *Service) Pass(ctx context.Context) error {
	jobs, err := db.Claim(ctx, s.DB, anyDue, func(tx *db.Tx) ([]string, error) {
		return takeSync.All(tx, tx.Micros(), db.Micros(tx.Now.Add(hold)))
	})
	if err != nil {
		return err
	}
	lacking := func(tx *db.Tx, last string) ([]string, error) { return behind.All(tx, version, last, atOnce) }
	each := func(tx *db.Tx, last string) ([]string, error) { return accounts.All(tx, last, atOnce) }
	if err := s.walk(ctx, false, lacking); err != nil {
		return err
	}
	for _, job := range jobs {
		if err := s.walk(ctx, true, each); err != nil {
			return err
		}
		if err := s.DB.Write(ctx, func(tx *db.Tx) error { _, err := endSync.Exec(tx, job, tx.Now); return err }); err != nil {
			return err
		}
	}
	return nil
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
			err := s.DB.Write(db.WithAccount(ctx, account), func(tx *db.Tx) error { return s.sync(tx, each) })
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
