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
	// scansPerLease is how often within one lease Loop looks for those that
	// have run out.
	scansPerLease = 12
	// stalled is how long a running agent may say nothing before its task
	// counts as stuck.
	stalled = 15 * time.Minute
	// inFlight is how long a claim's answer may be under way while its box
	// does not know of the run.
	inFlight = 5 * time.Second
)

// acceptBy is when a run that was claimed goes to another box unless its own
// has accepted it, or asked for more. That is soon: a box does nothing before,
// and a box that died while its claim waited will never do anything.
func (s *Service) acceptBy(tx *db.Tx) time.Time {
	return tx.Now.Add(protocol.RenewAfter(s.Lease))
}

// redispatchAt is when a run goes to another box unless its own asks again. By
// then that one has stopped.
func (s *Service) redispatchAt(tx *db.Tx) time.Time {
	return tx.Now.Add(protocol.RedispatchAfter(s.Lease))
}

// Loop takes back what boxes lost, and marks what got stuck, until ctx ends.
// Every node may run it.
func (s *Service) Loop(ctx context.Context) error {
	// A starting node cannot tell a box that was cut off from one that had
	// nobody to talk to: boxes get the time to renew, and to hand in what they
	// hold, before anything is taken back.
	pause := protocol.RenewAfter(s.Lease)
	var watch clock.Watch
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if watch.Set() > 0 { // all leases seem to have run out: the same again
			pause = protocol.RenewAfter(s.Lease)
			continue
		}
		in, end := observe.Pass(ctx, "run.leases")
		err := s.Scan(in)
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
	var expired, silent, moving []lease
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if expired, err = selectExpired.All(tx, tx.Now); err != nil {
			return err
		}
		if silent, err = selectStalled.All(tx, tx.Now.Add(-stalled)); err != nil {
			return err
		}
		moving, err = selectMoving.All(tx, tx.Now.Add(-stalled))
		return err
	})
	if err != nil {
		return err
	}
	var errs []error // one run that fails keeps no other from its turn
	for _, l := range expired {
		err := s.DB.Write(ctx, func(tx *db.Tx) error {
			return s.lose(tx, l, task.LeaseExpired, "The box stopped renewing its lease.",
				func(r *Row) bool { return r.LeaseExpiresAt.Before(tx.Now) })
		})
		errs = append(errs, err)
	}
	for _, l := range silent {
		errs = append(errs, s.mark(ctx, l, true))
	}
	for _, l := range moving {
		errs = append(errs, s.mark(ctx, l, false))
	}
	return errors.Join(errs...)
}

// mark marks the task of a run as stuck or not, if the run bears it out.
func (s *Service) mark(ctx context.Context, l lease, stuck bool) error {
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

// Verdicts answers a hello: which of the runs the box names go on. Runs that
// it should hold and does not name are lost.
func (s *Service) Verdicts(ctx context.Context, boxID string, refs []protocol.RunRef) ([]protocol.RunVerdict, error) {
	s.Dismiss(boxID) // what claims here was an earlier connection's
	var out []protocol.RunVerdict
	var gone []Row
	err := s.DB.Write(ctx, func(tx *db.Tx) error {
		out, gone = make([]protocol.RunVerdict, 0, len(refs)), nil
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
				gone = append(gone, r)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range gone {
		r := &gone[i]
		err := s.DB.Write(ctx, func(tx *db.Tx) error {
			return s.lose(tx, lease{r.ID, r.AccountID, r.TaskID}, task.BoxLost, "The box came back without the run.", nil)
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}
