package pull

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
)

// Limits of approved actions. A node renews its hold of an action while it works; after
// the hold another node takes the action. The time to the next try doubles with each
// failure, up to about a minute; the failure of the last try is final.
const (
	hold     = 15 * time.Second
	maxTries = 6
	sweep    = 10 * time.Second
)

// Loop calls Pass until ctx ends: after changes, and at each interval of sweep. Several
// nodes may run Loop at once: the database says what is due, and a node takes an action
// there. A failure is logged, and the next pass tries again.
func (s *Service) Loop(ctx context.Context) error {
	s.Hub.Sweep(ctx, "pulls.sweep", event.PullTopic, sweep, s.Pass)
	return nil
}

// Pass does the work that is due. A failure for one pull request does not keep Pass from
// the others.
func (s *Service) Pass(ctx context.Context) {
	each(ctx, s, "read the facts of a pull request", all(factsDue), s.readFacts)
	each(ctx, s, "stop a check or round", all(idleTasks), s.stopTask)
	each(ctx, s, "look at a head", all(unlooked), s.lookAtHead)
	each(ctx, s, "move a pull request on", func(tx *db.Tx) ([]found, error) { return toMove.All(tx, tx.Micros()) }, s.moveDue)
	each(ctx, s, "drop the branch of a round", all(untidy), s.tidy)
	for {
		due, err := s.take(ctx)
		if err != nil {
			observe.Complain(ctx, s.Logger, "take due actions", err)
		}
		if len(due) == 0 || err != nil {
			return
		}
		for _, d := range due {
			stop := s.keep(ctx, d)
			if err := s.apply(db.WithAccount(ctx, d.AccountID), d); err != nil {
				observe.Complain(ctx, s.Logger, "carry out action "+d.ID, err)
			}
			stop()
		}
	}
}

// each calls do for every row that find answers, in the account of the row.
func each[T interface{ about() found }](ctx context.Context, s *Service, what string, find func(*db.Tx) ([]T, error),
	do func(context.Context, T) error) {
	var rows []T
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		rows, err = find(tx)
		return err
	})
	if err != nil {
		observe.Complain(ctx, s.Logger, what, err)
	}
	for _, r := range rows {
		f := r.about()
		if err := do(db.WithAccount(ctx, f.AccountID), r); err != nil {
			observe.Complain(ctx, s.Logger, what, err, slog.String("id", f.ID))
		}
	}
}

func all[T any](q db.Query[T]) func(*db.Tx) ([]T, error) {
	return func(tx *db.Tx) ([]T, error) { return q.All(tx) }
}

// keep renews the hold of an action until stop is called.
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
				_, err := keepDue.Exec(tx, d.ID, d.Claim, db.Micros(tx.Now.Add(hold)))
				return err
			})
			if err != nil {
				observe.Complain(ctx, s.Logger, "hold on to action "+d.ID, err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// lapsed records what follows from a question that nobody answered in time.
func (s *Service) lapsed(tx *db.Tx, e dueRow) error {
	return tx.As(e.AccountID, func() error {
		pr, ok, err := lock(tx, e.PRID)
		if err != nil || !ok {
			return err
		}
		if e.Kind == KindPush {
			if err := s.notPushed(tx, pr); err != nil {
				return err
			}
		}
		return s.move(tx, pr.ID)
	})
}

// moveDue moves a pull request on that the clock moves.
func (s *Service) moveDue(ctx context.Context, d found) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, ok, err := lock(tx, d.ID); err != nil || !ok {
			return err
		}
		return s.move(tx, d.ID)
	})
}

// take ends the questions whose time is over, and takes one due action, if there is one.
// No other node takes the action for the time of hold.
func (s *Service) take(ctx context.Context) ([]dueRow, error) {
	return db.Claim(ctx, s.DB, anyDue, func(tx *db.Tx) ([]dueRow, error) {
		old, err := expire.All(tx, tx.Micros())
		if err != nil {
			return nil, err
		}
		for _, e := range old {
			err := expiredEvent.Record(tx, event.Subject{ID: e.ID, Account: e.AccountID}, questionData{HeadSHA: e.HeadSHA, PRID: e.PRID})
			if err != nil {
				return nil, err
			}
			if err := s.lapsed(tx, e); err != nil {
				return nil, err
			}
		}
		return takeDue.All(tx, tx.Micros(), db.Micros(tx.Now.Add(hold)), id.New())
	})
}
