package run

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/clock"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/observe"
	"yardmaster/internal/protocol"
)

const (
	// scansPerLease is how many passes Loop makes in the time of one lease.
	scansPerLease = 12
	// stalled is how long a running agent may send no event before its task
	// counts as stuck.
	stalled = 15 * time.Minute
	// inFlight is how long the answer to a claim may be on its way while the
	// box does not know of the run yet.
	inFlight = 5 * time.Second
)

// acceptBy returns when a claimed run goes to another box unless its own has
// accepted it or renewed the lease. That is soon: a box does nothing before it
// accepts, and a box that died while its claim waited never accepts.
func (s *Service) acceptBy(tx *db.Tx) time.Time {
	return tx.Now.Add(protocol.RenewAfter(s.Lease))
}

// redispatchAt returns when a run goes to another box unless its own renews the
// lease. By then its own box has stopped working on it.
func (s *Service) redispatchAt(tx *db.Tx) time.Time {
	return tx.Now.Add(protocol.RedispatchAfter(s.Lease))
}

// Loop ends the runs whose leases have expired, and marks tasks as stuck, until
// ctx ends. Every node may run it.
func (s *Service) Loop(ctx context.Context) error {
	// A starting node cannot tell a box that was cut off from one that had no
	// server to talk to. Boxes get the time to renew their leases and to send
	// their events before a run is ended.
	pause := protocol.RenewAfter(s.Lease)
	var watch clock.Watch
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if watch.Set() > 0 { // the clock was set, so all leases seem expired: wait again
			pause = protocol.RenewAfter(s.Lease)
			continue
		}
		in, end := observe.Pass(ctx, "run.leases")
		err := errors.Join(s.Scan(in), s.tidyUp(in))
		observe.Failed(in, err)
		end()
		if err != nil && ctx.Err() == nil {
			s.Logger.Error("scan leases", "error", err)
		}
		pause = s.Lease / scansPerLease
	}
}

// Scan is one pass of Loop.
func (s *Service) Scan(ctx context.Context) error {
	var expired, silent, moving, strayed []lease
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if expired, err = selectExpired.All(tx, tx.Now); err != nil {
			return err
		}
		if silent, err = selectStalled.All(tx, tx.Now.Add(-stalled)); err != nil {
			return err
		}
		if moving, err = selectMoving.All(tx, tx.Now.Add(-stalled)); err != nil {
			return err
		}
		strayed, err = selectStrayed.All(tx)
		return err
	})
	if err != nil {
		return err
	}
	var errs []error // an error of one run does not keep the others waiting
	for _, l := range expired {
		err := s.DB.Write(ctx, func(tx *db.Tx) error {
			return s.lose(tx, l, task.LeaseExpired, "The box stopped renewing its lease.",
				func(r *Row) bool { return r.LeaseExpiresAt.Before(tx.Now) })
		})
		errs = append(errs, err)
	}
	for _, l := range strayed {
		errs = append(errs, s.DB.Write(ctx, func(tx *db.Tx) error { return s.takeBack(tx, l) }))
	}
	for _, l := range silent {
		errs = append(errs, s.markStuck(ctx, l, true))
	}
	for _, l := range moving {
		errs = append(errs, s.markStuck(ctx, l, false))
	}
	return errors.Join(errs...)
}

// markStuck marks the task of a run as stuck or not, if the locked run confirms
// it.
func (s *Service) markStuck(ctx context.Context, l lease, stuck bool) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		defer tx.About(l.AccountID)()
		t, ok, err := task.Lock(tx, l.AccountID, l.TaskID)
		if err != nil || !ok || t.Status != task.Running {
			return err
		}
		r, ok, err := selectOfAccount.Maybe(tx, l.AccountID, l.ID)
		if err != nil || !ok || r.EndedAt != nil || stuck != r.ProgressAt.Before(tx.Now.Add(-stalled)) {
			return err
		}
		return s.Tasks.SetStuck(tx, &t, stuck)
	})
}

// Verdicts answers a hello: which of the runs that the box names go on. It ends
// the runs that the box should hold and does not name.
func (s *Service) Verdicts(ctx context.Context, boxID string, refs []protocol.RunRef) ([]protocol.RunVerdict, error) {
	s.Dismiss(boxID) // claims that wait here are those of an earlier connection
	var out []protocol.RunVerdict
	var missing []Row
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		out, missing = make([]protocol.RunVerdict, 0, len(refs)), nil
		live, err := selectLiveOnBox.All(tx, boxID)
		if err != nil {
			return err
		}
		byID := make(map[string]*Row, len(live))
		for i := range live {
			byID[live[i].ID] = &live[i]
		}
		named := map[string]bool{}
		for _, ref := range refs {
			r := byID[ref.Run]
			v := protocol.RunVerdict{Run: ref.Run, Attempt: ref.Attempt, Do: protocol.DoKill}
			if r != nil && r.Attempt == int64(ref.Attempt) && !named[r.ID] {
				n, err := renewLease.Exec(tx, renewLeaseArgs{
					BoxID: boxID, ID: r.ID, Attempt: r.Attempt, LeaseExpiresAt: s.redispatchAt(tx),
				})
				if err != nil {
					return err
				}
				if n == 1 {
					v.Do, v.FromSeq, v.LeaseMS = protocol.DoContinue, r.CommittedSeq+1, s.Lease.Milliseconds()
				}
				named[r.ID] = true
			}
			out = append(out, v)
		}
		for _, r := range live {
			// A run of the future was claimed before the clock was set back.
			if age := tx.Now.Sub(r.CreatedAt); !named[r.ID] && (age > inFlight || age < 0) {
				missing = append(missing, r)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range missing {
		r := &missing[i]
		err := s.DB.Write(ctx, func(tx *db.Tx) error {
			return s.lose(tx, lease{r.ID, r.AccountID, r.TaskID}, task.BoxLost, "The box came back without the run.", nil)
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
