package budget

import (
	"context"
	"maps"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
)

// Loop keeps this node's reservations alive, gives unused ones back, settles
// those of dead nodes, and puts tasks back that there is money for again, until
// ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	t := time.NewTicker(idle)
	defer t.Stop()
	for {
		in, end := observe.Pass(ctx, "budget.sweep")
		err := s.Sweep(in)
		observe.Failed(in, err)
		end()
		if err != nil && ctx.Err() == nil {
			s.Logger.Error("budgets were not swept; the next turn will", "error", err)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Sweep is one turn of Loop.
func (s *Service) Sweep(ctx context.Context) error {
	if err := s.returnIdle(ctx, s.Clock().Add(-idle)); err != nil {
		return err
	}
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := dropMinutes.Exec(tx, tx.Now.Add(-ledgerDays)); err != nil {
			return err
		}
		if _, err := keepAlive.Exec(tx, s.Node, tx.Now.Add(leaseTime)); err != nil {
			return err
		}
		due, err := selectDue.All(tx, tx.Now)
		if err != nil {
			return err
		}
		for _, r := range due {
			if r.WrittenOff { // for long enough
				if _, err := forget.Exec(tx, r.SessionID, r.Node); err != nil {
					return err
				}
				continue
			}
			if err := move(tx, r.AccountID, r.Meters.V, -r.left(), r.left()); err != nil {
				return err
			}
			if _, err := writeOff.Exec(tx, r.SessionID, r.Node, tx.Now.Add(afterlife)); err != nil {
				return err
			}
			err := unsettledEvent.Record(tx, event.Subject{ID: r.SessionID, Account: r.AccountID}, unsettledData{Micros: r.left()})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		tasks, err := selectIdle.All(tx, month(tx.Now))
		if err := s.freeAll(tx, tasks, err); err != nil {
			return err
		}
		sessions, err := selectIdleSessions.All(tx, month(tx.Now))
		if err := s.freeAll(tx, sessions, err); err != nil {
			return err
		}
		return s.Recheck(tx, "") // what the server's own table prices by now
	})
}

// freeRun lets a task go on that the limit of one run had stopped.
func (s *Service) freeRun(tx *db.Tx, account, taskID string) error {
	stops, err := stopOfRun.All(tx, account, taskID)
	return s.freeAll(tx, stops, err)
}

// PolicyChanged frees what the policy file of a repository of tx.Account
// stopped when its limits were lower than they are now.
func (s *Service) PolicyChanged(tx *db.Tx, repoID string, now Defaults) error {
	stops, err := selectStopsOfRepo.All(tx, tx.Account, repoID)
	for _, b := range stops {
		limit := now.Task
		if b.Scope == Run {
			limit = now.Run
		}
		if limit != nil && *limit <= b.Micros {
			continue
		}
		if err := s.free(tx, b); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return s.Recheck(tx, tx.Account)
}

// OperatorCap frees what the cap of an account's operator stopped when it was
// lower than it is now.
func (s *Service) OperatorCap(tx *db.Tx, account string, to *int64) error {
	own, ok, err := selectLimit.Maybe(tx, account, Account, account)
	if err != nil {
		return err
	}
	if ok {
		to = lower(to, &own)
	}
	return s.raised(tx, account, Account, account, to)
}

// raised frees what a limit of an account stopped when it was lower.
func (s *Service) raised(tx *db.Tx, account, scope, ref string, micros *int64) error {
	limit := int64(1) << 62
	if micros != nil {
		limit = *micros
	}
	stops, err := selectRaised.All(tx, selectRaisedArgs{AccountID: account, Scope: scope, Ref: ref, Micros: limit})
	if err := s.freeAll(tx, stops, err); err != nil || micros != nil {
		return err
	}
	return s.Recheck(tx, account) // a limit less
}

// Close gives back what no call needs any more. Call it after the last Settle.
func (s *Service) Close(ctx context.Context) error { return s.returnIdle(ctx, s.Clock()) }

func (s *Service) returnIdle(ctx context.Context, before time.Time) error {
	s.mu.Lock()
	held := maps.Clone(s.purses)
	s.mu.Unlock()
	for session, p := range held {
		if err := s.giveBack(ctx, session, p, before); err != nil {
			return err
		}
	}
	return nil
}
