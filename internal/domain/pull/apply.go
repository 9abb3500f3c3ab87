package pull

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// How approved actions are carried out: a node that is at them says so before
// each hold has passed, another takes over from one that does not, the next try
// comes after backoff doubled, and the last failure is final.
const (
	hold     = 15 * time.Second
	maxTries = 6
	sweep    = 10 * time.Second
)

// Loop carries out approved actions until ctx ends. Any node may run it: what
// is due is taken in the database. What fails is logged and tried again.
func (s *Service) Loop(ctx context.Context) error {
	s.Hub.Sweep(ctx, event.PullTopic, sweep, s.pass)
	return nil
}

// pass does all that is due now. One action that fails keeps no other from its
// turn.
func (s *Service) pass(ctx context.Context) {
	if err := s.loseChecks(ctx); err != nil {
		s.complain(ctx, "end lost checks", err)
	}
	if err := s.readFacts(ctx); err != nil {
		s.complain(ctx, "read the facts of pull requests", err)
	}
	if err := s.stopMinders(ctx); err != nil {
		s.complain(ctx, "stop checks and rounds", err)
	}
	if err := s.lookAtHeads(ctx); err != nil {
		s.complain(ctx, "look at heads", err)
	}
	if err := s.babysit(ctx); err != nil {
		s.complain(ctx, "begin rounds", err)
	}
	for {
		due, err := s.take(ctx)
		if err != nil {
			s.complain(ctx, "take due actions", err)
		}
		if len(due) == 0 || err != nil {
			return
		}
		for _, d := range due {
			stop := s.keep(ctx, d)
			if err := s.apply(ctx, d); err != nil {
				s.complain(ctx, "carry out action "+d.ID, err)
			}
			stop()
		}
	}
}

// keep holds on to an action until stop is called, or it has ended.
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
				_, err := keepDue.Exec(tx, d.ID, d.Tries, db.Micros(tx.Now.Add(hold)))
				return err
			})
			if err != nil {
				s.complain(ctx, "hold on to action "+d.ID, err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

func (s *Service) complain(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		s.Logger.ErrorContext(ctx, what, slog.Any("error", err))
	}
}

// take lets questions expire that nobody answered, and takes an action that is
// due, if one is: for a while no other node takes it.
func (s *Service) take(ctx context.Context) (due []dueRow, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		old, err := expire.All(tx, tx.Micros())
		if err != nil {
			return err
		}
		for _, e := range old {
			if _, err := expireNeeds.Exec(tx, e.PRID, tx.Micros()); err != nil {
				return err
			}
			if err := event.Record(tx, event.Change{Kind: "approval.expired", Object: e.ID, Account: e.AccountID, Data: map[string]any{"pr_id": e.PRID, "head_sha": e.HeadSHA}}); err != nil {
				return err
			}
		}
		due, err = takeDue.All(tx, tx.Micros(), db.Micros(tx.Now.Add(hold)))
		return err
	})
	return due, err
}

// loseChecks ends the checks whose tasks ended without a result.
func (s *Service) loseChecks(ctx context.Context) error {
	var lost []lostRow
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		lost, err = lostCI.All(tx)
		return err
	})
	if err != nil {
		return fmt.Errorf("find lost checks: %w", err)
	}
	for _, l := range lost {
		err := s.DB.Write(db.WithAccount(ctx, l.AccountID), func(tx *db.Tx) error {
			return s.CheckFinished(tx, CheckResult{TaskID: l.TaskID, Why: "the check could not be run: " + l.Why, Cancelled: l.Cancelled})
		})
		if err != nil {
			return fmt.Errorf("end the lost check of task %s: %w", l.TaskID, err)
		}
	}
	return nil
}

// apply merges one approved head. The host's merge is idempotent, so a crash
// between it and our own commit is repeated harmlessly.
func (s *Service) apply(ctx context.Context, d dueRow) error {
	ctx = db.WithAccount(ctx, d.AccountID)
	var pr row
	var r repo.Ref
	err := s.DB.Read(ctx, func(tx *db.Tx) (err error) {
		if pr, err = byID.One(tx, tx.Account, d.PRID); err == nil {
			r, _, err = repo.ByID(tx, pr.RepoID)
		}
		return err
	})
	if err != nil {
		return err
	}
	if pr.State != Open {
		return s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := endAction.Exec(tx, d.ID, ActionStale, nil)
			return err
		})
	}
	if ready, err := s.ready(ctx, d); err != nil || !ready {
		return err
	}
	// What the merge would change is looked at first, and merged into the base
	// that was looked at.
	l, mergeErr := s.look(ctx, r, pr.BaseRef, d.HeadSHA)
	if mergeErr == nil && !l.done && pr.AbandonedAt != nil {
		return s.dropOrder(ctx, d)
	}
	if mergeErr == nil && !l.done {
		if ordered, err := s.ordered(ctx, d, l.protected); err != nil || !ordered {
			return err
		}
	}
	var sha, message string
	if mergeErr == nil {
		if message, err = s.message(ctx, pr, d); err != nil {
			return err
		}
		sha, mergeErr = s.Host.Merge(ctx, r.HostRepo(), codehost.MergeOptions{
			Base: pr.BaseRef, Head: pr.HeadRef, HeadSHA: d.HeadSHA, BaseSHA: l.base, Method: codehost.Method(r.Policy.Merge.Method),
			Title: fmt.Sprintf("%s (#%d)", pr.Title, pr.Number), Body: message,
			Author: s.Bot, Committer: s.Bot,
		})
	}
	if ctx.Err() != nil {
		return nil // taken again after the hold
	}
	if errors.Is(mergeErr, codehost.ErrBaseMoved) {
		return s.DB.Write(ctx, func(tx *db.Tx) error {
			_, err := waitLonger.Exec(tx, d.ID, tx.Micros())
			return err
		})
	}
	if mergeErr != nil {
		s.Logger.WarnContext(ctx, "merge", slog.String("pr", pr.ID), slog.Any("error", mergeErr))
	} else if r.Policy.Merge.DeleteBranch {
		// A branch that moved on or is gone is left as it is.
		err := s.Host.DeleteBranch(ctx, r.HostRepo(), pr.HeadRef, d.HeadSHA)
		if err != nil && !errors.Is(err, codehost.ErrNotFound) && !errors.Is(err, codehost.ErrHeadMoved) {
			s.complain(ctx, "delete the merged branch of "+pr.ID, err)
		}
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error { return s.applied(tx, d, sha, mergeErr) })
	if err == nil && mergeErr == nil {
		s.Settled(ctx, r)
	}
	return err
}

// lockDue locks the pull request of an order; false if the order was taken back
// meanwhile.
func lockDue(tx *db.Tx, d dueRow) (pr row, a actionRow, ok bool, err error) {
	pr, ok, err = lock(tx, d.PRID)
	if err != nil || !ok {
		return pr, a, false, err
	}
	a, ok, err = openAction.Maybe(tx, pr.ID)
	return pr, a, ok && a.ID == d.ID, err
}

// ordered tells whether the order to merge a head stands, now that it is known
// what is protected of what the merge would change. If not, a person is asked.
func (s *Service) ordered(ctx context.Context, d dueRow, p *Protected) (ordered bool, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		ordered = false
		pr, a, ok, err := lockDue(tx, d)
		if err != nil || !ok {
			return err
		}
		r, _, err := repo.ByID(tx, pr.RepoID)
		if err != nil {
			return err
		}
		free := a.DecidedBy != nil && *a.DecidedBy == byPolicy
		switch mode := r.Policy.Merge.Mode; {
		case a.told(p) && (!free || mode == "auto"):
			ordered = true
			return nil
		case p == nil && mode == "never": // the policy takes its order back
			if _, err := replaced.Exec(tx, a.ID, tx.Micros()); err != nil {
				return err
			}
			return s.waits(tx, pr, NeedsMerge)
		}
		if _, err := replaced.Exec(tx, a.ID, tx.Micros()); err != nil {
			return err
		}
		if _, err := setLooked.Exec(tx, pr.ID, pr.HeadSHA); err != nil {
			return err
		}
		return s.question(tx, pr, p)
	})
	return ordered, err
}

// ready tells whether an approved merge may be carried out: it was not taken
// back meanwhile, and what its work was begun on top of is merged. If that never
// will be, neither will this, with it inside.
func (s *Service) ready(ctx context.Context, d dueRow) (ready bool, err error) {
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		ready = false
		pr, _, ok, err := lockDue(tx, d)
		if err != nil || !ok {
			return err
		}
		if ready = pr.TaskID == nil || s.Unmerged == nil; ready {
			return nil
		}
		on, dropped, err := s.Unmerged(tx, *pr.TaskID)
		ready = err == nil && on == ""
		switch {
		case err != nil || ready:
			return err
		case dropped:
			// A cancelled task's work may have been merged by somebody all the same.
			if _, merged, err := mergedOfTask.Maybe(tx, tx.Account, on); err != nil || merged {
				ready = err == nil
				return err
			}
		default:
			_, err := waitLonger.Exec(tx, d.ID, db.Micros(tx.Now.Add(sweep)))
			return err
		}
		why := "it is built on the work of task " + on + ", which was dropped"
		if _, err := endAction.Exec(tx, d.ID, ActionFailed, &why); err != nil {
			return err
		}
		if err := event.Record(tx, event.Change{Kind: "pr.merge_failed", Object: pr.ID, RepoID: pr.RepoID, Data: map[string]any{"reason": "superseded"}}); err != nil {
			return err
		}
		if err := s.waits(tx, pr, NeedsEnd); err != nil {
			return err
		}
		return s.TaskStuck(tx, *pr.TaskID, "superseded", why)
	})
	return ready, err
}

// dropOrder takes back the order to merge a pull request that was abandoned.
func (s *Service) dropOrder(ctx context.Context, d dueRow) error {
	return s.DB.Write(ctx, func(tx *db.Tx) error {
		pr, a, ok, err := lockDue(tx, d)
		if err != nil || !ok {
			return err
		}
		if _, err := replaced.Exec(tx, a.ID, tx.Micros()); err != nil {
			return err
		}
		if err := event.Record(tx, event.Change{Kind: "approval.stale", Object: a.ID, RepoID: pr.RepoID, Data: map[string]any{"pr_id": pr.ID, "head_sha": a.HeadSHA}}); err != nil {
			return err
		}
		return s.closeAbandoned(tx, pr)
	})
}

// applied records how a merge went. What the pull request is by now, it reads
// anew: its head may have moved meanwhile.
func (s *Service) applied(tx *db.Tx, d dueRow, sha string, mergeErr error) error {
	pr, _, err := lock(tx, d.PRID)
	if err != nil {
		return err
	}
	end := func(state, kind string, data map[string]any) error {
		var reason *string
		if mergeErr != nil {
			reason = &fault.From(mergeErr).Detail
		}
		if n, err := endAction.Exec(tx, d.ID, state, reason); err != nil || n == 0 && mergeErr != nil {
			return err // stale since: who moved the head has seen to the rest
		}
		return event.Record(tx, event.Change{Kind: kind, Object: pr.ID, RepoID: pr.RepoID, Data: data})
	}
	if mergeErr != nil {
		if a, open, err := openAction.Maybe(tx, pr.ID); err != nil || !open || a.ID != d.ID {
			return err // taken back since: whoever did has seen to the rest
		}
	}
	stuck := func(kind, why string) error {
		if pr.TaskID == nil {
			return nil
		}
		return s.TaskStuck(tx, *pr.TaskID, kind, why)
	}
	switch {
	case mergeErr == nil:
		n, err := setMerged.Exec(tx, pr.ID, sha, d.DecidedBy, tx.Micros())
		if err != nil || n == 0 {
			return err // recorded before
		}
		if _, err := endAction.Exec(tx, d.ID, ActionApplied, nil); err != nil {
			return err
		}
		// A newer head may have been asked about meanwhile.
		if _, err := staleActions.Exec(tx, pr.ID, tx.Micros()); err != nil {
			return err
		}
		return s.landed(tx, pr, d.HeadSHA, sha, d.DecidedBy)
	case errors.Is(mergeErr, codehost.ErrHeadMoved), errors.Is(mergeErr, codehost.ErrNotFound):
		s.Hub.Notify(tx, event.PullTopic) // what became of the branch is read next
		if err := end(ActionStale, "approval.stale", map[string]any{"head_sha": d.HeadSHA}); err != nil || pr.AbandonedAt == nil {
			return err
		}
		return s.closeAbandoned(tx, pr)
	case errors.Is(mergeErr, codehost.ErrConflict):
		if _, err := setClean.Exec(tx, pr.ID, "conflict", tx.Micros()); err != nil {
			return err
		}
		if err := end(ActionFailed, "pr.merge_failed", map[string]any{"reason": "merge_conflict"}); err != nil {
			return err
		}
		if pr.AbandonedAt != nil {
			return s.closeAbandoned(tx, pr)
		}
		repairing := pr.Babysit == BabysitCI || pr.Babysit == BabysitConflict
		if pr.Babysit != BabysitWatching && !repairing {
			if err := s.waits(tx, pr, NeedsRearm); err != nil {
				return err
			}
			return stuck("merge_conflict", "the branch conflicts with its base")
		}
		r, _, err := repo.ByID(tx, pr.RepoID)
		if err != nil {
			return err
		}
		pr.Mergeable = "conflict"
		if pr.TaskID != nil {
			if err := s.TaskAwaits(tx, *pr.TaskID, pr.ID); err != nil {
				return err
			}
		}
		if repairing {
			return nil // the end of the round sees to it
		}
		return s.attend(tx, r, pr)
	case d.Tries >= maxTries:
		if err := end(ActionFailed, "pr.merge_failed", map[string]any{"reason": "host_failed"}); err != nil {
			return err
		}
		if pr.AbandonedAt != nil {
			return s.closeAbandoned(tx, pr)
		}
		if err := s.waits(tx, pr, NeedsRetry); err != nil {
			return err
		}
		return stuck("push_rejected", "the code host did not carry out the merge")
	}
	_, err = postpone.Exec(tx, d.ID, db.Micros(tx.Now.Add(time.Second<<min(d.Tries, 6))))
	return err
}
