package task

import (
	"fmt"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
)

// move takes a locked task to another state. It checks the table of moves, writes the
// row with all its other changes, records the event, and wakes those who wait for the
// task or the queue.
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

// AnyQueue is the topic that is notified of changes in the queue of any account.
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

// MarkRunning moves a claimed task whose agent has started.
func (s *Service) MarkRunning(tx *db.Tx, t *Row) error {
	t.StartedAt = &tx.Now
	return move(s, tx, t, Running, startedEvent, startedData{RunID: t.RunID})
}

// Complete ends a task whose work needs no pull request.
func (s *Service) Complete(tx *db.Tx, t *Row) error {
	t.FailureKind, t.Failure = nil, nil
	if err := move(s, tx, t, Completed, CompletedEvent, Change{}); err != nil {
		return err
	}
	return s.succeeded(tx, t)
}

// ToAwaitingCI moves a task whose work is in a pull request with checks that have yet to
// pass.
func (s *Service) ToAwaitingCI(tx *db.Tx, t *Row, prID string) error {
	t.PRID, t.FailureKind, t.Failure = &prID, nil, nil
	return move(s, tx, t, AwaitingCI, awaitingCIEvent, shippedData{PRID: &prID})
}

// ToAwaitingReview moves a task whose pull request has passed its checks and waits for a
// person's decision.
func (s *Service) ToAwaitingReview(tx *db.Tx, t *Row) error {
	t.FailureKind, t.Failure = nil, nil // an earlier red check is history
	return move(s, tx, t, AwaitingReview, awaitingReviewEvent, shippedData{PRID: t.PRID})
}

// ToMergeable moves a task whose pull request has passed its checks and is approved.
func (s *Service) ToMergeable(tx *db.Tx, t *Row) error {
	t.FailureKind, t.Failure = nil, nil // an earlier red check is history
	return move(s, tx, t, Mergeable, mergeableEvent, shippedData{PRID: t.PRID})
}

// Merged ends a task whose pull request was merged.
func (s *Service) Merged(tx *db.Tx, t *Row) error {
	t.FailureKind, t.Failure = nil, nil
	if err := move(s, tx, t, Merged, MergedEvent, shippedData{PRID: t.PRID}); err != nil {
		return err
	}
	return s.succeeded(tx, t)
}

// Reopened moves a failed task whose pull request is open again, and releases the tasks
// that failed with it.
func (s *Service) Reopened(tx *db.Tx, t *Row, prID string) error {
	if err := lockFollowers(tx, t); err != nil {
		return err
	}
	t.FinishedAt = nil
	if err := s.ToAwaitingCI(tx, t, prID); err != nil {
		return err
	}
	_, err := s.releaseDependents(tx, t)
	return err
}

// Fail ends a task for good, and the tasks that depend on it.
func (s *Service) Fail(tx *db.Tx, t *Row, kind, detail string) error {
	if err := lockFollowers(tx, t); err != nil {
		return err
	}
	return s.fail(tx, t, kind, detail)
}

// fail is Fail when all tasks that may fail with t are locked.
func (s *Service) fail(tx *db.Tx, t *Row, kind, detail string) error {
	t.FailureKind, t.Failure = &kind, &detail
	if err := move(s, tx, t, Failed, FailedEvent, failedData{FailureKind: kind}); err != nil {
		return err
	}
	return s.failDependents(tx, t)
}

// Hold parks a task until a person acts. Kind is blocked,
// budget_exhausted or unpriced_model unless a policy parks it.
func (s *Service) Hold(tx *db.Tx, t *Row, kind, detail string) error {
	t.FailureKind, t.Failure = &kind, &detail
	return move(s, tx, t, Held, HeldEvent, failedData{FailureKind: kind})
}

// Release puts a held task back into the queue with all its tries.
func (s *Service) Release(tx *db.Tx, t *Row) error {
	t.Attempt, t.Charged, t.Uncharged, t.NotBefore = 0, 0, 0, time.UnixMicro(0)
	return move(s, tx, t, Pending, releasedEvent, releasedData{})
}

// SetBudget gives a task of tx.Account another budget, nil for none of its own, and
// returns the one before. It returns fault.NotFound for an unknown task, and
// fault.Conflict (task_terminal) for one that is over, unless it failed: then it may be
// redispatched with more. The caller records the event.
func SetBudget(tx *db.Tx, taskID string, micros *int64) (before *int64, err error) {
	t, err := find(tx, taskID, true)
	if err != nil {
		return nil, err
	}
	if t.Status.Terminal() && t.Status != Failed {
		return nil, fault.Reason("task_terminal", "The task is "+string(t.Status)+"; it will spend nothing more.")
	}
	_, err = updateBudget.Exec(tx, updateBudgetArgs{
		AccountID: t.AccountID, ID: t.ID, BudgetMicros: micros, UpdatedAt: tx.Now,
	})
	return t.BudgetMicros, err
}

// Requeue puts an in-flight task whose run was taken away back into the queue, without
// a charged try.
func (s *Service) Requeue(tx *db.Tx, t *Row, why string) error {
	if over, err := s.rejoin(tx, t); over || err != nil {
		return err
	}
	t.NotBefore = time.UnixMicro(0)
	return move(s, tx, t, Pending, requeuedEvent, requeuedData{Reason: why})
}

// AttemptFailed moves an in-flight task by the kind of its failure: back into the queue,
// to held, or to failed. It returns an error if the kind is unknown.
func (s *Service) AttemptFailed(tx *db.Tx, t *Row, kind, detail string) error {
	return s.attemptFailed(tx, t, kind, detail, consequences[kind])
}

// HostSilent is AttemptFailed for a try that the code host has ended: it did not answer
// when the work was fetched or pushed. The try is not charged, and the next one waits.
func (s *Service) HostSilent(tx *db.Tx, t *Row, kind, detail string) error {
	return s.attemptFailed(tx, t, kind, detail, forgiveLater)
}

func (s *Service) attemptFailed(tx *db.Tx, t *Row, kind, detail string, what consequence) error {
	if !KnownFailure(kind) {
		return fmt.Errorf("task %s: unknown failure kind %q", t.ID, kind)
	}
	if kind == PushRejected || kind == CheckoutFailed {
		r, err := s.Repos.ByID(tx, t.RepoID)
		if err != nil {
			return err
		}
		if r.Gone != "" || r.Lacks != "" || r.InTheWay != "" || r.Unborn {
			return s.retryWhenBack(tx, t, kind, detail)
		}
	}
	to, wait, charged, uncharged := afterFailure(what, t.Charged, t.Uncharged, t.MaxAttempts, s.Backoff)
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

// Parked puts an in-flight task back into the queue, where it waits until a time. That counts
// as no try.
func (s *Service) Parked(tx *db.Tx, t *Row, kind, detail string, until time.Time) error {
	if !KnownFailure(kind) {
		return fmt.Errorf("task %s: unknown failure kind %q", t.ID, kind)
	}
	if over, err := s.rejoin(tx, t); over || err != nil {
		return err
	}
	t.FailureKind, t.Failure, t.NotBefore = &kind, &detail, time.UnixMicro(0)
	if until.After(tx.Now) {
		t.NotBefore = until
	}
	ms := max(until.Sub(tx.Now), 0).Milliseconds()
	return move(s, tx, t, Pending, requeuedEvent, requeuedData{Charged: &t.Charged, FailureKind: &kind, WaitMS: &ms})
}

// retryWhenBack puts an in-flight task back into the queue whose run could not reach the
// repository, because the code host no longer lets the server in, or demands a permission
// that is not granted. That counts as no try; the task waits until the repository is
// enabled again, or the permission granted.
func (s *Service) retryWhenBack(tx *db.Tx, t *Row, kind, detail string) error {
	if over, err := s.rejoin(tx, t); over || err != nil {
		return err
	}
	t.FailureKind, t.Failure, t.NotBefore = &kind, &detail, time.UnixMicro(0)
	return move(s, tx, t, Pending, requeuedEvent, requeuedData{Charged: &t.Charged, FailureKind: &kind, Reason: StopRepoGone})
}

// RepoGone ends the runs of tasks in a repository of tx.Account at which its code host does
// not let the server any more. Their work can be pushed nowhere. The tasks wait in the queue.
func (s *Service) RepoGone(tx *db.Tx, repoID string) error {
	ids, err := selectInFlight.All(tx, tx.Account, repoID)
	if err != nil {
		return err
	}
	locked, err := LockAll(tx, tx.Account, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		t, ok := locked[id]
		if !ok || !t.Status.InFlight() {
			continue
		}
		if err := RunUnwanted.Send(tx, Unwanted{&t, StopRepoGone}); err != nil {
			return err
		}
		if err := s.Requeue(tx, &t, StopRepoGone); err != nil {
			return err
		}
	}
	return nil
}

// rejoin counts again what an in-flight task waits for, because the task may have been
// linked to others since it was claimed. If one of these failed or was cancelled, rejoin
// fails the task and returns that it is over.
func (s *Service) rejoin(tx *db.Tx, t *Row) (over bool, err error) {
	up, err := selectUpstream.All(tx, t.ID)
	if err != nil {
		return false, err
	}
	t.WaitingDeps = 0
	for _, u := range up {
		switch {
		case u.Status == Failed || u.Status == Cancelled:
			if err := lockFollowers(tx, t); err != nil {
				return true, err
			}
			return true, s.failBecause(tx, t, u)
		case !u.Status.succeeded(): // when u ends, its transaction locks t and counts it down
			t.WaitingDeps++
		}
	}
	return false, nil
}

// cause says why a task that depends on up cannot go on, by the name of the task in which it
// began: what failed only because of another names that one.
func (up upstream) cause() string {
	if up.Status == Failed && up.FailureKind != nil && *up.FailureKind == DependencyFailed && up.Failure != nil {
		return *up.Failure
	}
	became := "has failed"
	if up.Status == Cancelled {
		became = "was cancelled"
	}
	return fmt.Sprintf("The task %q, which it depends on, %s.", up.Title, became)
}

// failBecause fails a task that depends on up, when all tasks that wait for the task are
// locked.
func (s *Service) failBecause(tx *db.Tx, t *Row, up upstream) error {
	return s.fail(tx, t, DependencyFailed, up.cause())
}

// SetBase stores the commit that the running attempt works from.
func (s *Service) SetBase(tx *db.Tx, t *Row, sha string) error {
	t.BaseSHA = &sha
	return store(tx, t, t.Status)
}

// SetWIP stores the commit of unfinished work on the task's branch, and its paths.
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

// Stick marks a task as stuck for a reason. A task that is stuck already takes the new
// reason.
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

// lockFollowers locks all tasks that wait for t, directly or through others, before one
// of them is moved with t.
func lockFollowers(tx *db.Tx, t *Row) error {
	_, err := lockBelow.All(tx, t.ID)
	return err
}

// succeeded ends the wait of the tasks that depend on t.
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

// failDependents fails the pending and held tasks that depend on t. They have to be
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
		if err := s.failBecause(tx, &d, upstream{t.ID, t.Title, t.Status, t.FailureKind, t.Failure}); err != nil {
			return err
		}
	}
	return nil
}

// revive puts t back into the queue with all its tries, and after it the tasks that
// failed because of it, whose ids it returns. They have to be locked.
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

// releaseDependents puts the tasks that failed because of t back into the queue, and
// returns their ids.
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

// lostUpstream returns a dependency of the task that has failed or was cancelled, with
// its state; "" without one.
func lostUpstream(tx *db.Tx, taskID string) (string, Status, error) {
	up, err := selectUpstream.All(tx, taskID)
	for _, u := range up {
		if u.Status == Failed || u.Status == Cancelled {
			return u.ID, u.Status, err
		}
	}
	return "", "", err
}
