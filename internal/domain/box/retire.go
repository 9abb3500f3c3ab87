package box

import (
	"context"
	"errors"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
)

// retireGrace is how long a box being decommissioned has to hand back its runs,
// unless the call says otherwise.
const retireGrace = 10 * time.Minute

// statusDraining is the status of a Removal while the box hands back its runs.
const statusDraining = "draining"

type decommissionIn struct {
	ID     string `json:"id" format:"uuid" doc:"id of the box"`
	GraceS *int   `json:"grace_s" unit:"seconds" minimum:"0" maximum:"3600" doc:"seconds that the box has to hand back what it holds, with what was done saved; left out: 600. Again, it only shortens what is left"`
}

// decommission drains a box and then revokes it: at once if the box has no run
// to hand back. Otherwise retireAll revokes it once the box has, or once its
// grace is over.
func (s *Service) decommission(ctx context.Context, in decommissionIn) (out Removal, err error) {
	grace := retireGrace
	if in.GraceS != nil {
		grace = time.Duration(*in.GraceS) * time.Second
	}
	var waits, first bool
	err = s.DB.Write(op.Answers(ctx, &out), func(tx *db.Tx) error {
		r, err := s.find(tx, in.ID, true)
		if err != nil {
			return err
		}
		if waits = r.State != Revoked && grace > 0 && handing(r, tx.Now) > 0; waits {
			out, err = s.retire(tx, r, grace)
		} else {
			out, first, err = s.removeIn(tx, r, true)
		}
		return err
	})
	if err != nil || waits {
		return out, err
	}
	return s.disconnect(ctx, out, first), nil
}

// retire drains a box that retireAll will revoke. A second call may only
// shorten the grace.
func (s *Service) retire(tx *db.Tx, r row, grace time.Duration) (out Removal, err error) {
	until, again := tx.Now.Add(grace), r.RetireAt != nil
	if again && r.RetireAt.Before(until) {
		until = *r.RetireAt
	}
	out = Removal{ID: r.ID, State: r.State, Status: statusDraining, Handing: handing(r, tx.Now), RevokesAt: &until}
	if again && until.Equal(*r.RetireAt) {
		return out, nil // nothing changes
	}
	if r.State == Enrolled {
		drained, err := s.empty(tx, r)
		if err != nil {
			return out, err
		}
		out.State = string(drained.State)
		s.wake(tx, tx.Account)
	}
	if _, err := setRetiring.Exec(tx, setRetiringArgs{
		AccountID: tx.Account, ID: r.ID, State: out.State, RetireAt: until,
		RetireBy: policy.From(tx.Context()).Label(),
	}); err != nil {
		return out, err
	}
	return out, retiringEvent.Record(tx, event.Subject{ID: r.ID}, retiringData{Handing: out.Handing,
		RevokesAt: until.Truncate(time.Millisecond)})
}

// retireAll revokes the boxes being decommissioned that have handed back their
// runs, or whose grace is over.
func (s *Service) retireAll(ctx context.Context) error {
	var due []retiring
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		due, err = s.retirable(tx)
		return err
	})
	for _, each := range due {
		err = errors.Join(err, s.retireOne(ctx, each.ID, each.AccountID))
	}
	return err
}

func (s *Service) retireOne(ctx context.Context, boxID, account string) error {
	var out Removal
	err := s.DB.Write(ctx, func(tx *db.Tx) (err error) {
		tx.Account = account
		r, err := s.find(tx, boxID, true)
		// The decommission may have been called off, or another node may have
		// completed it.
		if err != nil || r.RetireAt == nil || r.State == Revoked || r.RetireAt.After(tx.Now) && (r.State != Drained || r.Active > 0) {
			return err
		}
		out, _, err = s.removeIn(tx, r, true)
		return err
	})
	if err == nil && out.ID != "" {
		s.disconnect(ctx, out, true)
	}
	return err
}
