package run

import (
	"context"
	"maps"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

const (
	// reapEvents is about how many events one transaction removes.
	reapEvents = 5000
	// reapSlack is how much longer than the limit the oldest run has to be over before events
	// go, so that an account's record says at most a few times a day what went.
	reapSlack = 24 * time.Hour
)

// reapedData is the data of reapedEvent.
type reapedData struct {
	Runs   int64     `json:"runs" doc:"of how many runs"`
	Events int64     `json:"events" doc:"how many events were removed"`
	Before time.Time `json:"before" doc:"all those runs had ended before this"`
}

// reapedEvent records that events of runs are gone. Its subject is the account.
var reapedEvent = event.Declare[reapedData]("run.events_reaped", event.Audience(event.Sessions.Scope),
	"Events of runs that ended long ago were removed; reports stay.")

// Old counts the events that go next: those of runs that ended before a time.
func Old(tx *db.Tx, at time.Time) (int64, error) { return countOld.One(tx, at) }

// tidyUp calls Reap once an hour.
func (s *Service) tidyUp(ctx context.Context) error {
	due := false
	err := s.tidy.Do(ctx, s.DB, func(*db.Tx) error { due = true; return nil })
	if err == nil && due {
		err = s.Reap(policy.With(ctx, policy.Actor{Credential: policy.System}))
	}
	return err
}

// Reap removes the events of runs that ended longer ago than KeepEvents, but for what reports
// show.
func (s *Service) Reap(ctx context.Context) error {
	due := false
	if err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		due, err = anyOver.One(tx, tx.Now.Add(-s.KeepEvents-reapSlack))
		return err
	}); err != nil {
		return err
	}
	for due && ctx.Err() == nil {
		if err := s.DB.Write(ctx, func(tx *db.Tx) (err error) {
			due, err = reap(tx, tx.Now.Add(-s.KeepEvents))
			return err
		}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// reap removes the events of some runs that ended before a time.
func reap(tx *db.Tx, before time.Time) (more bool, err error) {
	runs, err := selectOver.All(tx, before)
	if err != nil {
		return false, err
	}
	gone := map[string]*reapedData{}
	var read int64
	for _, r := range runs {
		if read > reapEvents {
			break
		}
		read += r.CommittedSeq
		if n, err := markReaped.Exec(tx, r.ID, tx.Now); err != nil {
			return false, err
		} else if n == 0 {
			continue
		}
		n, err := removeEvents.Exec(tx, r.ID)
		if err != nil {
			return false, err
		}
		if n == 0 {
			continue
		}
		if gone[r.AccountID] == nil {
			gone[r.AccountID] = &reapedData{Before: before.UTC().Truncate(time.Millisecond)}
		}
		gone[r.AccountID].Runs++
		gone[r.AccountID].Events += n
	}
	for _, account := range slices.Sorted(maps.Keys(gone)) {
		if err := reapedEvent.Record(tx, event.Subject{ID: account, Account: account}, *gone[account]); err != nil {
			return false, err
		}
	}
	return len(runs) > 0, nil
}
