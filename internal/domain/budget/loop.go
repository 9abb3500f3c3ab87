package budget

import (
	"context"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/observe"
)

// Loop looks after reservations and stopped work until ctx ends.
func (s *Service) Loop(ctx context.Context) error {
	s.Hub.Sweep(ctx, "budget.sweep", topic, lookTime, func(ctx context.Context) {
		err := s.pass(ctx)
		observe.Failed(ctx, err)
		if err != nil && ctx.Err() == nil {
			s.Logger.Error("sweep of budgets failed; the next one tries again", "error", err)
		}
	})
	return nil
}

// pass is Sweep if that is due, and otherwise only gives back what is not used and frees work.
func (s *Service) pass(ctx context.Context) error {
	if now := s.Clock(); now.Sub(s.swept) >= idleTime {
		err := s.Sweep(ctx)
		if err == nil {
			s.swept = now
		}
		return err
	}
	if err := s.releaseIdle(ctx, s.Clock().Add(-idleTime)); err != nil {
		return err
	}
	return s.look(ctx)
}

// Sweep gives unused reserves of this node back and prolongs its other
// reservations, counts those of dead nodes as spent, tells of limits that are nearly spent, frees work that has money
// again, and deletes old minutes and days. It returns the error of the database.
func (s *Service) Sweep(ctx context.Context) error {
	if err := s.releaseIdle(ctx, s.Clock().Add(-idleTime)); err != nil {
		return err
	}
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		if _, err := dropMinutes.Exec(tx, tx.Now.Add(-minutesTime)); err != nil {
			return err
		}
		if _, err := dropDays.Exec(tx, dayOf(tx.Now.Add(-minutesTime))); err != nil {
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
			if err := r.storeDay(tx, tx.Now, r.left()); err != nil {
				return err
			}
			if _, err := writeOff.Exec(tx, r.SessionID, r.Node, tx.Now.Add(writtenOffTime)); err != nil {
				return err
			}
			if r.ofKey() {
				continue // the session's says so
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
	if err := s.warn(ctx); err != nil {
		return err
	}
	return s.look(ctx)
}

// Close gives back all reserves that no call has. The caller calls it after the
// last Settle.
func (s *Service) Close(ctx context.Context) error { return s.releaseIdle(ctx, s.Clock()) }
