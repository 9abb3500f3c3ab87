package merge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/domain/pull/facts"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/pull/trial"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// Queue is the part of merge queues that merges need. All are of tx.Account.
type Queue interface {
	// Admit tells whether an approved merge may be made now, and from which commit of the
	// base. base is its present commit, and atHost says that the base has a queue at its
	// host. A merge that may not be made is in a queue afterwards; TurnCame goes on.
	Admit(tx *db.Tx, r repo.Ref, m QueueItem, base string, atHost bool) (Turn, error)
	// Merged tells that an order was carried out.
	Merged(tx *db.Tx, prID, actionID, sha string) error
	// AtHost tells whether an order waits in the queue of its host.
	AtHost(tx *db.Tx, prID, actionID string) (bool, error)
	// Seen records the place that a pull request has in the queue of its host.
	Seen(tx *db.Tx, r repo.Ref, prID string, at codehost.QueueEntry, in bool) error
	// Expelled tells that the host took a pull request out of its queue, why, and its word for that.
	Expelled(tx *db.Tx, r repo.Ref, prID string, why codehost.Exit, says string) error
	// Refusals counts how often the host did not take an order into its queue.
	Refusals(tx *db.Tx, actionID, headSHA string) (int64, error)
	facts.Queue
}

// QueueItem is an approved merge.
type QueueItem struct {
	PRID, ActionID, HeadSHA, BaseRef string
	Number                           int64
	Fork                             bool // its branch is in another repository
	OrderedAt                        time.Time
}

// Turn tells whether a merge may be made now; BaseSHA "" is any commit of the base.
type Turn struct {
	Go      bool
	BaseSHA string
}

// Reasons why a head is thrown out of a merge queue.
const (
	RejectedCheck    = "check"
	RejectedConflict = "conflict"
	RejectedHead     = "head"
	RejectedRule     = "rule"
)

// Rejection is a head that was thrown out of its merge queue.
type Rejection struct {
	PRID, ActionID, HeadSHA string
	Reason                  string // check, conflict, head, rule; any other: a person decides
	Why, Log                string
}

// TurnCame has an approved merge tried that waits in a queue.
func (s *Merger) TurnCame(tx *db.Tx, actionID string) error {
	s.orders.Add(tx, actionID, due.Entry{Account: tx.Account})
	return nil
}

// begin tells whether the host is told now to carry an order out, and notes that. If not, instead is
// what comes of the order: it waits in a queue, perhaps, or its merge would make changes that it does not
// cover.
func (s *Merger) begin(ctx context.Context, j due.Job[record.DueRow], r repo.Ref, pr *record.Pull, t trial.Trial) (begun bool,
	instead due.Outcome) {
	d := j.Row
	atHost, err := s.hostQueues(ctx, r, pr.BaseRef)
	if err != nil {
		return false, waitFor(err)
	}
	if atHost {
		if over, outcome := s.lookInQueue(ctx, r, pr, d); over {
			return false, outcome
		}
	}
	stands := false
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		begun, stands = false, false
		if _, ok, err := record.Lock(tx, d.PRID); err != nil || !ok {
			return err
		}
		o, err := s.stands(tx, d)
		if err != nil || o.is != ordersGoes || !o.covers(t.Protected) {
			return err
		}
		stands = true
		m := QueueItem{PRID: o.ID, ActionID: d.ID, HeadSHA: d.HeadSHA, BaseRef: o.BaseRef, Number: o.Number,
			Fork: o.Fork, OrderedAt: o.action.RequestedAt}
		if at := o.action.DecidedAt; at != nil {
			m.OrderedAt = *at
		}
		turn, err := s.Queue.Admit(tx, r, m, t.Base, atHost)
		if err != nil {
			return err
		}
		if begun = turn.Go && (turn.BaseSHA == "" || turn.BaseSHA == t.Base); !begun {
			return nil
		}
		j.Renew(tx) // another node may have the order by now
		_, err = record.CallHost.Exec(tx, d.ID)
		return err
	})
	switch {
	case err != nil:
		return false, due.Again(err)
	case !stands:
		return false, s.unmade(d, t.Protected)
	}
	return begun, s.waits(d, LongestWait)
}

// waitFor is what comes of an order that a busy host keeps waiting.
func waitFor(cause error) due.Outcome {
	if busy, is := errors.AsType[*codehost.BusyError](cause); is {
		return due.Wait(min(max(busy.After, time.Second), LongestWait))
	}
	return due.Again(cause)
}

// hostQueues tells whether merges into a branch go through a queue of its host.
func (s *Merger) hostQueues(ctx context.Context, r repo.Ref, base string) (bool, error) {
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil || !forge.Can(codehost.QueueNative) || !forge.Can(codehost.KeepPulls) || !forge.Can(codehost.KeepRules) {
		return false, err
	}
	rules, _, err := forge.BranchRules(codehost.WithUrgency(ctx, codehost.ForPeople), r.HostRepo(), base, "")
	if _, hidden := errors.AsType[*codehost.ForbiddenError](err); hidden || errors.Is(err, codehost.ErrNotFound) {
		return false, nil // the host says at the merge if it has a queue
	}
	if err != nil {
		return false, fmt.Errorf("read whether %s has a merge queue: %w", base, err)
	}
	return rules.Queue, nil
}

// lookInQueue asks a host for a pull request that waits in its queue; deliveries may be
// lost. over tells that outcome is what comes of the order.
func (s *Merger) lookInQueue(ctx context.Context, r repo.Ref, pr *record.Pull, d record.DueRow) (over bool, outcome due.Outcome) {
	queued := false
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		queued, err = s.Queue.AtHost(tx, pr.ID, d.ID)
		return err
	})
	if err != nil || !queued {
		return err != nil, due.Again(err)
	}
	forge, err := s.Hosts.Forge(r.HostRepo())
	if err != nil {
		return true, due.Again(err)
	}
	ctx = codehost.WithUrgency(ctx, codehost.ForRuns)
	at, in, err := forge.QueueEntry(ctx, r.HostRepo(), pr.Number)
	if err != nil {
		return true, waitFor(err)
	}
	now, _, err := forge.Pull(ctx, r.HostRepo(), pr.Number, "") // after the queue: it may just have merged
	if err != nil {
		return true, waitFor(err)
	}
	switch {
	case now.Merged:
		m := s.compared(ctx, r, pr.Attempt(d.HeadSHA), trial.Trial{Done: true}, now.MergeSHA)
		return true, due.Done(func(tx *db.Tx) error {
			_, _, err := s.applied(tx, d, m)
			return err
		})
	case now.HeadSHA != "" && now.HeadSHA != d.HeadSHA:
		return true, s.failed(d, MaxTries, codehost.ErrHeadMoved)
	case !now.Open:
		err = s.Pulls.HostChanged(ctx, r, codehost.PullChanged{Pull: now})
	default:
		err = s.DB.Write(ctx, func(tx *db.Tx) error { return s.Queue.Seen(tx, r, pr.ID, at, in) })
		return err != nil, due.Again(err)
	}
	if err != nil {
		return true, due.Again(err)
	}
	return true, due.Wait(sweep)
}

// MergedInQueue records a merge that the queue of a host has made; false if the pull
// request is not in it, or was merged at another head.
func (s *Merger) MergedInQueue(tx *db.Tx, pr *record.Pull, a record.Action, p codehost.Pull) (bool, error) {
	if a.State != record.ActionApproved || a.HeadSHA != p.HeadSHA && p.HeadSHA != "" {
		return false, nil
	}
	queued, err := s.Queue.AtHost(tx, pr.ID, a.ID)
	if err != nil || !queued {
		return false, err
	}
	s.orders.Hurry(tx, a.ID)
	_, _, err = s.applied(tx, order(tx, pr, a), record.Made{SHA: p.MergeSHA})
	return true, err
}

// MergeBegun tells whether the merge of a pull request is made by now, here or by the queue
// of its host.
func (s *Merger) MergeBegun(tx *db.Tx, pr *record.Pull) (bool, error) {
	a, asked, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil || !asked || a.State != record.ActionApproved || a.Called {
		return err == nil && asked && a.State == record.ActionApproved, err
	}
	return s.Queue.AtHost(tx, pr.ID, a.ID)
}

// Order is the row of an order, as its queue loads it.
func order(tx *db.Tx, pr *record.Pull, a record.Action) record.DueRow {
	return record.DueRow{Found: record.Found{ID: a.ID, AccountID: tx.Account}, PRID: pr.ID, HeadSHA: a.HeadSHA, Called: a.Called,
		DecidedBy: a.DecidedBy}
}

// Rejected moves a pull request on whose head was thrown out of its merge queue: an agent
// repairs it, the merge is tried again, or a person decides.
func (s *Merger) Rejected(tx *db.Tx, o Rejection) error {
	pr, ok, err := record.Lock(tx, o.PRID)
	if err != nil || !ok {
		return err
	}
	a, open, err := record.OpenAction.Maybe(tx, pr.ID)
	if err != nil || !open || a.ID != o.ActionID || a.HeadSHA != o.HeadSHA || a.State != record.ActionApproved || pr.State != record.Open {
		return err // the order was taken back
	}
	d := order(tx, pr, a)
	switch {
	case o.Reason == RejectedConflict:
		return s.thrownOut(tx, d, MaxTries, pr, codehost.ErrConflict)
	case o.Reason == RejectedHead:
		return s.thrownOut(tx, d, MaxTries, pr, codehost.ErrHeadMoved)
	case o.Reason == RejectedRule:
		tries, err := s.Queue.Refusals(tx, a.ID, a.HeadSHA)
		if err != nil {
			return err
		}
		return s.thrownOut(tx, d, tries, pr, &codehost.BlockedError{Missing: []string{o.Why}})
	case o.Reason != RejectedCheck:
		return s.thrownOut(tx, d, MaxTries, pr, &codehost.BlockedError{Missing: []string{o.Why}})
	}
	if n, err := record.EndAction.Exec(tx, a.ID, record.ActionFailed, o.Why); err != nil || n == 0 {
		return err
	}
	s.OrderEnded(tx, a)
	if _, err := record.SetToMend.Exec(tx, a.ID); err != nil {
		return err
	}
	if err := record.MergeFailedEvent.Record(tx, event.Subject{ID: pr.ID, RepoID: pr.RepoID},
		record.MergeFailedData{Reason: "queue_failed"}); err != nil {
		return err
	}
	if err := record.SetResults(tx, pr, record.Judgement{Own: record.ChecksFailed, Host: pr.HostChecks, Why: o.Why}); err != nil {
		return err
	}
	return s.Pulls.Move(tx, pr)
}

// thrownOut is notMerged for an order that a queue has thrown out.
func (s *Merger) thrownOut(tx *db.Tx, d record.DueRow, tries int64, pr *record.Pull, cause error) error {
	again, err := s.notMerged(tx, d, tries, pr, cause)
	switch {
	case err != nil:
		return err
	case again:
		s.retryLater(tx, d.ID, Retries.After(int(tries)))
	default:
		s.orders.Hurry(tx, d.ID)
	}
	return nil
}
