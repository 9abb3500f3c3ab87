package budget

import (
	"context"
	"maps"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
)

// Loop calls Sweep until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	t := time.NewTicker(idleTime)
	defer t.Stop()
	for {
		in, end := observe.Pass(ctx, "budget.sweep")
		err := s.Sweep(in)
		observe.Failed(in, err)
		end()
		if err != nil && ctx.Err() == nil {
			s.Logger.Error("sweep of budgets failed; the next one tries again", "error", err)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// Sweep gives unused reserves of this node back and prolongs its other
// reservations, counts those of dead nodes as spent, frees work that has money
// again, and deletes old minutes. It returns the error of the database.
func (s *Service) Sweep(ctx context.Context) error {
	if err := s.releaseIdle(ctx, s.Clock().Add(-idleTime)); err != nil {
		return err
	}
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := dropMinutes.Exec(tx, tx.Now.Add(-minutesTime)); err != nil {
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
			if r.WrittenOff { // writtenOffTime ago
				if _, err := dropReservation.Exec(tx, r.SessionID, r.Node); err != nil {
					return err
				}
				continue
			}
			if err := addToMeters(tx, r.AccountID, r.Meters.V, -r.left(), r.left()); err != nil {
				return err
			}
			if _, err := writeOff.Exec(tx, r.SessionID, r.Node, tx.Now.Add(writtenOffTime)); err != nil {
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
		return s.Recheck(tx, "") // the server's table may have new prices
	})
}

// freeRun frees a task that the limit of one run has stopped.
func (s *Service) freeRun(tx *db.Tx, account, taskID string) error {
	stops, err := stopOfRun.All(tx, account, taskID)
	return s.freeAll(tx, stops, err)
}

// PolicyChanged frees the work that the policy file of a repository of tx.Account
// has stopped, where its limits are higher now.
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

// OperatorCap frees the work that the operator's cap of an account has stopped, if
// the cap is higher now; nil is none.
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

// raised frees the work that a limit of an account has stopped, if it is higher now;
// nil is none.
func (s *Service) raised(tx *db.Tx, account, scope, ref string, micros *int64) error {
	limit := int64(1) << 62
	if micros != nil {
		limit = *micros
	}
	stops, err := selectRaised.All(tx, selectRaisedArgs{AccountID: account, Scope: scope, Ref: ref, Micros: limit})
	if err := s.freeAll(tx, stops, err); err != nil || micros != nil {
		return err
	}
	return s.Recheck(tx, account) // models without a price need no limit
}

// Close gives back all reserves that no call has. The caller calls it after the
// last Settle.
func (s *Service) Close(ctx context.Context) error { return s.releaseIdle(ctx, s.Clock()) }

// releaseIdle gives back the reserves that no call has and that were last used at
// the time before or earlier.
func (s *Service) releaseIdle(ctx context.Context, before time.Time) error {
	s.mu.Lock()
	all := maps.Clone(s.reserves)
	s.mu.Unlock()
	for session, r := range all {
		if err := s.release(ctx, session, r, before); err != nil {
			return err
		}
	}
	return nil
}
