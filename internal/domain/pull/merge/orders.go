package merge

import (
	"errors"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/pull/facts"
	"yardmaster/internal/domain/pull/moves"
	"yardmaster/internal/domain/pull/record"
)

// An order to merge is an action of a person, or of the policy, that stands. Its entry in the
// queue "merges" has its id. The order is given and its entry added in one transaction; whatever
// ends it otherwise has the entry looked at, which is over then. What the host has answered is
// recorded by the node that has the entry. If that dies, another one tells the host once more,
// which answers the commit of a merge that it has made.

// MaxTries is after how many tries the failure of a merge is final.
const MaxTries = 6

// Retries says when a merge is tried again.
var Retries = due.Ladder{First: 2 * time.Second, Longest: 64 * time.Second}

// sweep is the time to the next look at an order that does not stand.
const sweep = 10 * time.Second

// LongestWait limits the time to the next look at an order that waits for something.
const LongestWait = 2 * time.Minute

func loadOrder(tx *db.Tx, actionID string) (record.DueRow, bool, error) {
	return record.OrderByID.Maybe(tx, actionID)
}

func allOrders(tx *db.Tx, most int) ([]due.Open, error) { return record.OpenOrders.All(tx, most) }

// OrderEnded is called when an action has ended that nobody has carried out.
func (s *Merger) OrderEnded(tx *db.Tx, a record.Action) {
	if a.Kind == record.KindMerge && a.State == record.ActionApproved {
		s.orders.Hurry(tx, a.ID)
	}
}

// retryLater has an order carried out again, after a wait of its own.
func (s *Merger) retryLater(tx *db.Tx, actionID string, after time.Duration) {
	s.orders.Drop(tx, actionID)
	s.orders.Add(tx, actionID, due.Entry{Account: tx.Account, After: after})
}

// GiveUp ends an order of which nodes have died. The host is asked whether it has merged.
func (s *Merger) GiveUp(tx *db.Tx, actionID, why string) error {
	d, ok, err := loadOrder(tx, actionID)
	if err != nil || !ok {
		return err
	}
	pr, ok, err := record.Lock(tx, d.PRID)
	if err != nil || !ok {
		return err
	}
	_, err = s.notMerged(tx, d, MaxTries, pr, errors.New(why))
	return err
}

// stand is how an order stands.
type stand struct {
	facts.Moving
	action record.Action
	is     string
}

// How an order may stand.
const (
	ordersGoes  = "goes"  // it is to be carried out now
	ordersWaits = "waits" // until it is
	ordersOver  = "over"  // its task was cancelled, or the policy, which gave it, has it no more
	ordersGone  = "gone"  // it was taken back, or another one is in its place
)

// stands tells whether the table has the head of an order merged now, whatever the host was
// told of that before.
func (s *Merger) stands(tx *db.Tx, d record.DueRow) (o stand, err error) {
	o.is = ordersGone
	var known, open bool
	if o.Moving, known, err = s.Look(tx, &record.Pull{ID: d.PRID}); err != nil || !known {
		return o, err
	}
	o.action, open, err = record.OpenAction.Maybe(tx, d.PRID)
	if err != nil || !open || o.action.ID != d.ID || o.action.State != record.ActionApproved || o.action.HeadSHA != d.HeadSHA {
		return o, err
	}
	if o.State != record.Open || o.AbandonedAt != nil {
		o.is = ordersOver
		return o, nil
	}
	if o.Facts.Act.Is(moves.ActCalled) {
		o.Facts.Act = moves.NoAct
		o.Step = facts.Next(o.Facts, facts.Rules(o.Repo))
	}
	switch {
	// Its queue says whether its turn has come.
	case o.Step.Do == moves.DoMerge, o.Step.Do == moves.DoEnter, o.Step == moves.Step{Do: moves.DoWait, Of: moves.ForTurn}:
		o.is = ordersGoes
	case o.Step.Do == moves.DoPerson && o.Facts.Yes.Is(moves.NoYes):
		o.is = ordersOver
	default:
		o.is = ordersWaits
	}
	return o, nil
}

// covers tells whether an order covers the protected changes p that its merge would make; nil is
// none.
func (o stand) covers(p *record.Protected) bool {
	free := o.action.DecidedBy != nil && *o.action.DecidedBy == record.ByPolicy
	return o.action.Covers(p) && (!free || o.Repo.Policy.Merge.Mode == "auto")
}

// unmade is what comes of an order that was not carried out, because it does not stand or does
// not cover what its merge would change. One that the table does not have merged now waits until
// it does.
func (s *Merger) unmade(d record.DueRow, p *record.Protected) due.Outcome {
	return due.Decide(func(tx *db.Tx) (due.Outcome, error) {
		pr, ok, err := record.Lock(tx, d.PRID)
		if err != nil || !ok {
			return due.Done(nil), err
		}
		o, err := s.stands(tx, d)
		switch {
		case err != nil || o.is == ordersGone:
			return due.Done(nil), err
		case o.is == ordersWaits:
			return s.waits(d, sweep), s.Pulls.Move(tx, pr)
		case o.is == ordersGoes && o.covers(p):
			return due.Wait(0), nil
		}
		if err := s.replace(tx, o.Pull, o.action); err != nil {
			return due.Outcome{}, err
		}
		if o.is == ordersGoes && (p != nil || o.Repo.Policy.Merge.Mode != "never") { // else the policy has changed since its order
			o.LookedSHA = o.HeadSHA
			if err := record.Save(tx, o.Pull); err != nil {
				return due.Outcome{}, err
			}
			if err := s.Question(tx, o.Pull, p); err != nil {
				return due.Outcome{}, err
			}
		}
		return due.Done(nil), s.Pulls.Move(tx, o.Pull)
	})
}

// waits is what comes of an order whose time has not come, or that the host did not take.
func (s *Merger) waits(d record.DueRow, after time.Duration) due.Outcome {
	return s.uncalled(d, after, func(tx *db.Tx) error {
		_, err := record.NotCalled.Exec(tx, d.ID)
		return err
	})
}

// uncalled has an order wait that the host has not carried out, and records that. What people and
// git have said while the host was told counts now, so that the pull request moves on, unless
// this order is what comes next.
func (s *Merger) uncalled(d record.DueRow, after time.Duration, then func(*db.Tx) error) due.Outcome {
	return due.Wait(after).With(func(tx *db.Tx) error {
		pr, ok, err := record.Lock(tx, d.PRID)
		if err != nil || !ok {
			return err
		}
		if err := then(tx); err != nil {
			return err
		}
		if m, ok, err := s.Look(tx, pr); err != nil || !ok || facts.Ordered(m.Step) {
			return err
		}
		return s.Pulls.Move(tx, pr)
	})
}
