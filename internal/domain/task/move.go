package task

import (
	"fmt"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// move takes a locked task to another state: it checks the table of moves,
// writes the row with whatever else changed in it, the audit row, and wakes
// those who wait for the task or the queue.
func move[T any, P interface {
	*T
	change() *Change
}](s *Service, tx *db.Tx, t *Row, to Status, kind event.Kind[T], data T) error {
	from := t.Status
	if !Allowed(from, to) {
		return fmt.Errorf("task %s cannot go from %s to %s", t.ID, from, to)
	}
	t.Status = to
	if to.Terminal() {
		t.FinishedAt = &tx.Now
	}
	if !to.InFlight() {
		t.Stuck = false
	}
	if to == Pending {
		t.QueuedAt, t.RunID, t.BoxID, t.ClaimedAt, t.StartedAt, t.FinishedAt = tx.Now, nil, nil, nil, nil, nil
	}
	if from == Pending {
		t.ConflictWith, t.ConflictPaths, t.ConflictAt = nil, db.JSON[[]string]{V: []string{}}, nil
	}
	if err := store(tx, t, from); err != nil {
		return err
	}
	if err := endConflicts(tx, t, from); err != nil {
		return err
	}
	if err := Moved.Send(tx, Move{t, from}); err != nil {
		return err
	}
	return tell[T, P](s.Hub, tx, t, kind, data)
}

// AnyQueue is the topic that has news when the queue of any account does.
var AnyQueue = event.QueueTopic("")

// MarkClaimed gives a pending task to a box, as its next attempt.
func (s *Service) MarkClaimed(tx *db.Tx, t *Row, runID, boxID string) error {
	t.Attempt++
	t.RunID, t.BoxID, t.ClaimedAt = &runID, &boxID, &tx.Now
	if err := QueueChanged.Send(tx, QueueChange{Lane: t.Lane(), Created: t.CreatedAt, Claimed: true}); err != nil {
		return err
	}
	return move(s, tx, t, Claimed, claimedEvent, claimedData{Attempt: t.Attempt, BoxID: boxID, RunID: runID})
}

// MarkRunning tells that the agent has started.
func (s *Service) MarkRunning(tx *db.Tx, t *Row) error {
	t.StartedAt = &tx.Now
	return move(s, tx, t, Running, startedEvent, startedData{RunID: t.RunID})
}

// Complete ends a task whose work needs no pull request.
func (s *Service) Complete(tx *db.Tx, t *Row) error {
	t.FailureKind, t.Failure = nil, nil
	if err := move(s, tx, t, Completed, completedEvent, Change{}); err != nil {
		return err
	}
	return s.succeeded(tx, t)
}

// ToAwaitingCI tells that the work is in a pull request whose checks have yet
// to pass.
func (s *Service) ToAwaitingCI(tx *db.Tx, t *Row, prID string) error {
	t.PRID, t.FailureKind, t.Failure = &prID, nil, nil
	return move(s, tx, t, AwaitingCI, awaitingCIEvent, shippedData{PRID: &prID})
}

// ToAwaitingReview tells that the checks of the task's pull request passed, and
// that a person has yet to decide about it.
func (s *Service) ToAwaitingReview(tx *db.Tx, t *Row) error {
	t.FailureKind, t.Failure = nil, nil // an earlier red check is history
	return move(s, tx, t, AwaitingReview, awaitingReviewEvent, shippedData{PRID: t.PRID})
}

// ToMergeable tells that the task's pull request is green and approved.
func (s *Service) ToMergeable(tx *db.Tx, t *Row) error {
	t.FailureKind, t.Failure = nil, nil // an earlier red check is history
	return move(s, tx, t, Mergeable, mergeableEvent, shippedData{PRID: t.PRID})
}

// Merged ends a task whose pull request was merged.
func (s *Service) Merged(tx *db.Tx, t *Row) error {
	t.FailureKind, t.Failure = nil, nil
	if err := move(s, tx, t, Merged, mergedEvent, shippedData{PRID: t.PRID}); err != nil {
		return err
	}
	return s.succeeded(tx, t)
}

// Reopened tells that the pull request is open again with which a task failed.
func (s *Service) Reopened(tx *db.Tx, t *Row, prID string) error {
	if err := holdBelow(tx, t); err != nil {
		return err
	}
	t.FinishedAt = nil
	if err := s.ToAwaitingCI(tx, t, prID); err != nil {
		return err
	}
	_, err := s.releaseDependents(tx, t)
	return err
}

// Fail ends a task for good, and what depends on it.
func (s *Service) Fail(tx *db.Tx, t *Row, kind, detail string) error {
	if err := holdBelow(tx, t); err != nil {
		return err
	}
	return s.fail(tx, t, kind, detail)
}

// fail is Fail once all that may fail with t is locked.
func (s *Service) fail(tx *db.Tx, t *Row, kind, detail string) error {
	t.FailureKind, t.Failure = &kind, &detail
	if err := move(s, tx, t, Failed, failedEvent, failedData{FailureKind: kind}); err != nil {
		return err
	}
	return s.failDependents(tx, t)
}

// Hold parks a task until a person acts. Kind is blocked,
// budget_exhausted or unpriced_model unless a policy parks it.
func (s *Service) Hold(tx *db.Tx, t *Row, kind, detail string) error {
	t.FailureKind, t.Failure = &kind, &detail
	return move(s, tx, t, Held, heldEvent, failedData{FailureKind: kind})
}

// Release puts a held task back into the queue with all its tries.
func (s *Service) Release(tx *db.Tx, t *Row) error {
	t.Attempt, t.Charged, t.Uncharged, t.NotBefore = 0, 0, 0, time.UnixMicro(0)
	return move(s, tx, t, Pending, releasedEvent, releasedData{})
}

// SetBudget gives a task of tx.Account another budget, nil for none of its own,
// and answers the one before. One that is over needs none; one that failed may
// be redispatched with more. The caller writes the audit row.
func SetBudget(tx *db.Tx, taskID string, micros *int64) (before *int64, repoID string, err error) {
	t, err := find(tx, taskID, true)
	if err != nil {
		return nil, "", err
	}
	if t.Status.Terminal() && t.Status != Failed {
		return nil, "", fault.Reason("task_terminal", "The task is "+string(t.Status)+"; it will spend nothing more.")
	}
	_, err = updateBudget.Exec(tx, updateBudgetArgs{
		AccountID: t.AccountID, ID: t.ID, BudgetMicros: micros, UpdatedAt: tx.Now,
	})
	return t.BudgetMicros, t.RepoID, err
}

// Requeue puts an in-flight task whose run was taken away from it back into
// the queue, with nothing charged.
func (s *Service) Requeue(tx *db.Tx, t *Row, why string) error {
	if over, err := s.rejoin(tx, t); over || err != nil {
		return err
	}
	t.NotBefore = time.UnixMicro(0)
	return move(s, tx, t, Pending, requeuedEvent, requeuedData{Reason: why})
}

// AttemptFailed puts an in-flight task where its failure leads: back into the
// queue, parked, or failed for good.
func (s *Service) AttemptFailed(tx *db.Tx, t *Row, kind, detail string) error {
	if !KnownFailure(kind) {
		return fmt.Errorf("task %s: unknown failure kind %q", t.ID, kind)
	}
	to, wait, charged, uncharged := afterFailure(kind, t.Charged, t.Uncharged, t.MaxAttempts, s.Backoff)
	t.Charged, t.Uncharged = charged, uncharged
	if to == Failed {
		return s.Fail(tx, t, kind, detail)
	}
	if kind == BoxUnfit {
		endings, err := s.Related.Endings(tx, t.ID)
		if err != nil {
			return err
		}
		wait = pace(endings, s.Backoff)
	}
	if over, err := s.rejoin(tx, t); over || err != nil {
		return err
	}
	if to == Held {
		return s.Hold(tx, t, kind, detail)
	}
	t.FailureKind, t.Failure = &kind, &detail
	t.NotBefore = time.UnixMicro(0)
	if wait > 0 {
		t.NotBefore = tx.Now.Add(wait)
	}
	ms := wait.Milliseconds()
	return move(s, tx, t, Pending, requeuedEvent, requeuedData{Charged: &charged, FailureKind: &kind, WaitMS: &ms})
}

// rejoin counts afresh what an in-flight task waits for: it may have been
// linked to others since it was claimed. If one of those did not succeed, the
// task is over.
func (s *Service) rejoin(tx *db.Tx, t *Row) (over bool, err error) {
	up, err := selectUpstream.All(tx, t.ID)
	if err != nil {
		return false, err
	}
	t.WaitingDeps = 0
	for _, u := range up {
		switch {
		case u.Status == Failed || u.Status == Cancelled:
			if err := holdBelow(tx, t); err != nil {
				return true, err
			}
			return true, s.lost(tx, t, u)
		case !u.Status.succeeded(): // it locks t when it ends, and sees then that it is waited for
			t.WaitingDeps++
		}
	}
	return false, nil
}

// lost ends a task for good that depends on up, once all that waits for it is
// locked.
func (s *Service) lost(tx *db.Tx, t *Row, up upstream) error {
	return s.fail(tx, t, DependencyFailed, fmt.Sprintf("%s, which it depends on, is %s.", up.ID, up.Status))
}

// SetBase notes the commit that the running attempt works from.
func (s *Service) SetBase(tx *db.Tx, t *Row, sha string) error {
	t.BaseSHA = &sha
	return store(tx, t, t.Status)
}

// SetWIP notes unfinished work that was saved on the task's branch.
func (s *Service) SetWIP(tx *db.Tx, t *Row, sha string, paths []string) error {
	if paths == nil {
		paths = []string{}
	}
	t.WIPSHA, t.WIPPaths, t.WIPAt = &sha, db.JSON[[]string]{V: paths}, &tx.Now
	if err := store(tx, t, t.Status); err != nil {
		return err
	}
	s.Hub.Notify(tx, event.TaskTopic(t.ID))
	return nil
}

// SetStuck marks a task as stuck, or as moving again.
func (s *Service) SetStuck(tx *db.Tx, t *Row, stuck bool) error {
	if t.Stuck == stuck {
		return nil
	}
	t.Stuck = stuck
	if err := store(tx, t, t.Status); err != nil {
		return err
	}
	if err := StuckChanged.Send(tx, t); err != nil {
		return err
	}
	if stuck {
		return tell(s.Hub, tx, t, stuckEvent, stuckData{})
	}
	return tell(s.Hub, tx, t, unstuckEvent, Change{})
}

// Stick marks a task as stuck for a reason, which may be a newer one.
func (s *Service) Stick(tx *db.Tx, t *Row, kind, detail string) error {
	t.Stuck, t.FailureKind, t.Failure = true, &kind, &detail
	if err := store(tx, t, t.Status); err != nil {
		return err
	}
	if err := StuckChanged.Send(tx, t); err != nil {
		return err
	}
	return tell(s.Hub, tx, t, stuckEvent, stuckData{FailureKind: kind})
}

// holdBelow locks all tasks that wait for t, at any remove, before one of them
// is moved with it.
func holdBelow(tx *db.Tx, t *Row) error {
	_, err := lockBelow.All(tx, t.ID)
	return err
}

// succeeded lets the dependents of t go on.
func (s *Service) succeeded(tx *db.Tx, t *Row) error {
	if _, err := lockDependents.All(tx, t.ID); err != nil {
		return err
	}
	freed, err := dependencyDone.All(tx, t.ID)
	if err != nil {
		return err
	}
	return sendReady(tx, freed)
}

// failDependents fails every pending task that waits for t, all of which are
// locked.
func (s *Service) failDependents(tx *db.Tx, t *Row) error {
	ids, err := selectDependents.All(tx, t.ID)
	if err != nil {
		return err
	}
	for _, dep := range ids {
		d, ok, err := Lock(tx, t.AccountID, dep)
		if err != nil {
			return err
		}
		if !ok || d.Status != Pending && d.Status != Held {
			continue
		}
		if err := s.lost(tx, &d, upstream{t.ID, t.Status}); err != nil {
			return err
		}
	}
	return nil
}

// revive puts t back into the queue with all its tries, and after it the
// dependents that failed because of it, all of which are locked. It answers
// their ids.
func revive[T any, P interface {
	*T
	change() *Change
}](s *Service, tx *db.Tx, t *Row, kind event.Kind[T], data T) (ids []string, err error) {
	t.Attempt, t.Charged, t.Uncharged, t.NotBefore = 0, 0, 0, time.UnixMicro(0)
	up, err := selectUpstream.All(tx, t.ID)
	if err != nil {
		return nil, err
	}
	t.WaitingDeps = 0
	for _, u := range up {
		if !u.Status.succeeded() {
			t.WaitingDeps++
		}
	}
	if err := move[T, P](s, tx, t, Pending, kind, data); err != nil {
		return nil, err
	}
	return s.releaseDependents(tx, t)
}

// releaseDependents puts those back into the queue that failed because of t.
func (s *Service) releaseDependents(tx *db.Tx, t *Row) (released []string, err error) {
	ids, err := selectDependents.All(tx, t.ID)
	if err != nil {
		return nil, err
	}
	for _, dep := range ids {
		d, ok, err := Lock(tx, t.AccountID, dep)
		if err != nil {
			return nil, err
		}
		if !ok || d.Status != Failed || d.FailureKind == nil || *d.FailureKind != DependencyFailed {
			continue
		}
		if lost, _, err := lostUpstream(tx, d.ID); err != nil {
			return nil, err
		} else if lost != "" {
			continue // something else it needs has failed as well
		}
		further, err := revive(s, tx, &d, releasedEvent, releasedData{Because: t.ID})
		if err != nil {
			return nil, err
		}
		released = append(append(released, d.ID), further...)
	}
	return released, nil
}

// lostUpstream names a dependency of the task that will not succeed, with its
// state, or "".
func lostUpstream(tx *db.Tx, taskID string) (string, Status, error) {
	up, err := selectUpstream.All(tx, taskID)
	for _, u := range up {
		if u.Status == Failed || u.Status == Cancelled {
			return u.ID, u.Status, err
		}
	}
	return "", "", err
}
