package pull

import (
	"context"
	"log/slog"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
)

// sweep is the interval of the loop.
const sweep = 10 * time.Second

// Loop calls Pass until ctx ends: after changes, and at each interval of sweep. A failure is
// logged, and the next pass tries again.
func (s *Service) Loop(ctx context.Context) error {
	s.Hub.Sweep(ctx, "pulls.sweep", event.PullTopic, sweep, s.Pass)
	return nil
}

// Pass does the work that is due. A failure for one pull request does not keep Pass from
// the others.
func (s *Service) Pass(ctx context.Context) {
	each(ctx, s, "read the facts of a pull request", all(record.FactsDue), s.readFacts)
	each(ctx, s, "stop a check or round", all(record.IdleTasks), s.stopTask)
	each(ctx, s, "look at a head", all(record.Unlooked), s.LookAtHead)
	each(ctx, s, "move a pull request on", func(tx *db.Tx) ([]record.Found, error) { return record.ToMove.All(tx, tx.Micros()) }, s.moveDue)
	each(ctx, s, "drop the branch of a round", all(record.Untidy), s.tidy)
	each(ctx, s, "end a question", func(tx *db.Tx) ([]record.DueRow, error) { return record.Lapsed.All(tx, tx.Micros()) }, s.lapse)
}

// each calls do for every row that find answers, in the account of the row.
func each[T interface{ About() record.Found }](ctx context.Context, s *Service, what string, find func(*db.Tx) ([]T, error),
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
		f := r.About()
		if err := do(db.WithAccount(ctx, f.AccountID), r); err != nil {
			observe.Complain(ctx, s.Logger, what, err, slog.String("id", f.ID))
		}
	}
}

func all[T any](q db.Query[T]) func(*db.Tx) ([]T, error) {
	return func(tx *db.Tx) ([]T, error) { return q.All(tx) }
}

// lapse ends a question that nobody has answered in time.
func (s *Service) lapse(ctx context.Context, e record.DueRow) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, ok, err := record.Lock(tx, e.PRID)
		if err != nil || !ok {
			return err
		}
		if ended, err := s.Expired(tx, pr, e.ID, e.HeadSHA); err != nil || !ended {
			return err
		}
		if e.Kind == record.KindPush {
			if err := s.notPushed(tx, pr); err != nil {
				return err
			}
		}
		return s.Move(tx, pr)
	})
}

// moveDue moves a pull request on that the clock moves.
func (s *Service) moveDue(ctx context.Context, d record.Found) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, ok, err := record.Lock(tx, d.ID)
		if err != nil || !ok {
			return err
		}
		return s.Move(tx, pr)
	})
}
