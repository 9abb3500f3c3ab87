package pull

import (
	"context"
	"errors"
	"fmt"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/event"
)

// How approved actions are carried out: one try may take hold, the next comes
// after backoff doubled, and the last failure is final.
const (
	hold     = 2 * time.Minute
	maxTries = 6
	sweep    = 30 * time.Second
)

// Loop carries out approved actions until ctx ends. Any node may run it: what
// is due is taken in the database.
func (s *Service) Loop(ctx context.Context) error {
	tick := time.NewTicker(sweep)
	defer tick.Stop()
	for {
		news := s.Hub.Watch(event.PullTopic)
		if err := s.pass(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-news:
		case <-tick.C:
		}
	}
}

func (s *Service) pass(ctx context.Context) error {
	if err := s.loseChecks(ctx); err != nil {
		return err
	}
	for {
		var due []dueRow
		err := s.DB.Write(ctx, func(tx *db.Tx) (err error) {
			if _, err = expire.Exec(tx, tx.Micros()); err != nil {
				return err
			}
			due, err = takeDue.All(tx, tx.Micros(), db.Micros(tx.Now.Add(hold)))
			return err
		})
		if err != nil {
			return fmt.Errorf("take due actions: %w", err)
		}
		if len(due) == 0 {
			return nil
		}
		for _, d := range due {
			if err := s.apply(ctx, d); err != nil {
				return err
			}
		}
	}
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
			return s.CheckFinished(tx, CheckResult{TaskID: l.TaskID, Why: "the check could not be run: " + l.Why})
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
	merge := codehost.MergeOptions{
		Base: pr.BaseRef, Head: pr.HeadRef, HeadSHA: d.HeadSHA, Method: codehost.Method(r.Policy.Merge.Method),
		Title:  fmt.Sprintf("%s (#%d)", pr.Title, pr.Number),
		Author: bot, Committer: bot,
	}
	sha, mergeErr := s.Host.Merge(ctx, r.HostRepo(), merge)
	if ctx.Err() != nil {
		return nil // taken again after the hold
	}
	if mergeErr == nil && r.Policy.Merge.DeleteBranch {
		// A branch that moved on or is gone is left as it is.
		if err := s.Host.DeleteBranch(ctx, r.HostRepo(), pr.HeadRef, d.HeadSHA); err != nil && !errors.Is(err, codehost.ErrNotFound) && !errors.Is(err, codehost.ErrHeadMoved) {
			return fmt.Errorf("delete the merged branch: %w", err)
		}
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error { return s.applied(tx, d, pr, sha, mergeErr) })
	if err == nil && mergeErr == nil {
		s.Settled(r)
	}
	return err
}

var bot = codehost.Person{Name: "Yardmaster", Email: "yardmaster@localhost"}

func (s *Service) applied(tx *db.Tx, d dueRow, pr row, sha string, mergeErr error) error {
	end := func(state, kind string, data map[string]any) error {
		var reason *string
		if mergeErr != nil {
			m := mergeErr.Error()
			reason = &m
		}
		if _, err := endAction.Exec(tx, d.ID, state, reason); err != nil {
			return err
		}
		return event.Record(tx, event.Change{Kind: kind, Object: pr.ID, RepoID: pr.RepoID, Data: data})
	}
	switch {
	case mergeErr == nil:
		n, err := setMerged.Exec(tx, pr.ID, sha, d.DecidedBy, tx.Micros())
		if err != nil || n == 0 {
			return err // recorded before
		}
		if err := end(ActionApplied, "pr.merged", map[string]any{"number": pr.Number, "head_sha": d.HeadSHA, "merge_sha": sha, "task_id": pr.TaskID, "merged_by": d.DecidedBy}); err != nil {
			return err
		}
		if pr.TaskID != nil {
			return s.TaskMerged(tx, *pr.TaskID)
		}
		return nil
	case errors.Is(mergeErr, codehost.ErrHeadMoved):
		return end(ActionStale, "approval.stale", map[string]any{"head_sha": d.HeadSHA})
	case errors.Is(mergeErr, codehost.ErrConflict):
		if _, err := setClean.Exec(tx, pr.ID, "conflict", tx.Micros()); err != nil {
			return err
		}
		if err := end(ActionFailed, "pr.merge_failed", map[string]any{"reason": "merge_conflict"}); err != nil {
			return err
		}
		if pr.TaskID != nil {
			return s.TaskStuck(tx, *pr.TaskID, "merge_conflict", "the branch conflicts with its base")
		}
		return nil
	case d.Tries >= maxTries:
		return end(ActionFailed, "pr.merge_failed", map[string]any{"reason": "host_failed"})
	}
	_, err := postpone.Exec(tx, d.ID, db.Micros(tx.Now.Add(time.Second<<min(d.Tries, 6))))
	return err
}
