package pull

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
)

// How approved actions are carried out: a node that is at them says so before
// each hold has passed, another takes over from one that does not, the next try
// comes after backoff doubled, and the last failure is final.
const (
	hold     = 15 * time.Second
	maxTries = 6
	sweep    = 10 * time.Second
)

// Loop looks after pull requests until ctx ends. Any node may run it: what is
// due is found, and taken, in the database. What fails is logged and tried
// again.
func (s *Service) Loop(ctx context.Context) error {
	s.Hub.Sweep(ctx, "pulls.sweep", event.PullTopic, sweep, s.Pass)
	return nil
}

// Pass does all that is due now, as Loop does time and again. What fails for one
// pull request keeps no other from its turn.
func (s *Service) Pass(ctx context.Context) {
	each(ctx, s, "read the facts of a pull request", all(factsDue), s.readFacts)
	each(ctx, s, "stop a check or round", all(idleMinders), s.stopMinder)
	each(ctx, s, "look at a head", all(unlooked), s.lookAtHead)
	each(ctx, s, "begin a round", func(tx *db.Tx) ([]found, error) { return troubled.All(tx, tx.Micros()) }, s.babysit)
	each(ctx, s, "resume what is green again", all(becalmed), s.resume)
	for {
		due, err := s.take(ctx)
		if err != nil {
			s.complain(ctx, "take due actions", err)
		}
		if len(due) == 0 || err != nil {
			return
		}
		for _, d := range due {
			stop := s.keep(ctx, d)
			if err := s.apply(db.WithAccount(ctx, d.AccountID), d); err != nil {
				s.complain(ctx, "carry out action "+d.ID, err)
			}
			stop()
		}
	}
}

// each does something about all that a query finds, each in its account.
func each[T interface{ about() found }](ctx context.Context, s *Service, what string, find func(*db.Tx) ([]T, error), do func(context.Context, T) error) {
	var rows []T
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = find(tx)
		return err
	})
	if err != nil {
		s.complain(ctx, what, err)
	}
	for _, r := range rows {
		f := r.about()
		if err := do(db.WithAccount(ctx, f.AccountID), r); err != nil {
			s.complain(ctx, what, err, slog.String("id", f.ID))
		}
	}
}

func all[T any](q db.Query[T]) func(*db.Tx) ([]T, error) {
	return func(tx *db.Tx) ([]T, error) { return q.All(tx) }
}

// keep holds on to an action until stop is called, or it has ended.
func (s *Service) keep(ctx context.Context, d dueRow) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(hold / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			err := s.DB.Write(ctx, func(tx *db.Tx) error {
				_, err := keepDue.Exec(tx, d.ID, d.Tries, db.Micros(tx.Now.Add(hold)))
				return err
			})
			if err != nil {
				s.complain(ctx, "hold on to action "+d.ID, err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (s *Service) complain(ctx context.Context, what string, err error, more ...any) {
	observe.Failed(ctx, err)
	if ctx.Err() == nil {
		s.Logger.ErrorContext(ctx, what, append(more, slog.Any("error", err))...)
	}
}

// take lets questions expire that nobody answered, and takes an action that is
// due, if one is: for a while no other node takes it.
func (s *Service) take(ctx context.Context) (due []dueRow, err error) {
	var any bool
	err = s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		any, err = anyDue.One(tx, tx.Micros())
		return err
	})
	if err != nil || !any {
		return nil, err
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		old, err := expire.All(tx, tx.Micros())
		if err != nil {
			return err
		}
		for _, e := range old {
			if _, err := expireNeeds.Exec(tx, e.PRID, tx.Micros()); err != nil {
				return err
			}
			err := expiredEvent.Record(tx, event.Subject{ID: e.ID, Account: e.AccountID}, questionData{HeadSHA: e.HeadSHA, PRID: e.PRID})
			if err != nil {
				return err
			}
		}
		due, err = takeDue.All(tx, tx.Micros(), db.Micros(tx.Now.Add(hold)))
		return err
	})
	return due, err
}
