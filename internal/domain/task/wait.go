package task

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// Lane is the line in which a ready task waits: the tasks of one repository,
// template and priority. Template is empty for tasks of kind ci.
type Lane struct {
	AccountID string
	RepoID    string
	Template  string
	Priority  int64
}

// Lane returns the lane of the task.
func (t *Row) Lane() Lane {
	return Lane{AccountID: t.AccountID, RepoID: t.RepoID, Template: t.Template, Priority: t.Priority}
}

// QueueChange is what a change of one task does to its account's queue.
type QueueChange struct {
	Lane    Lane
	Pending int64     // how many more tasks are pending: -1, 0 or 1
	Ready   int64     // how many more tasks are ready: -1, 0 or 1
	Created time.Time // when the task was created
	Claimed bool      // a box has claimed the task
}

// QueueChanged is sent when a task joins or leaves the queue, begins or ceases to be
// ready, or is claimed.
var QueueChanged = event.DeclareSignal[QueueChange]("task.queue_changed", "The queue has one task more or less, or a task in it is ready.")

// Ready tells whether a task waits for nothing but a box.
func (t *Row) Ready() bool {
	return t.Status == Pending && t.WaitingDeps == 0 && t.NotBefore.UnixMicro() == 0 && t.ConflictWith == nil
}

// open tells whether a task's work may still change its repository.
func (s Status) open() bool { return s.InFlight() || s.Shipped() && !s.succeeded() }

// sendReady sends QueueChanged for the tasks that are ready now.
func sendReady(tx *db.Tx, tasks []freed) error {
	for _, f := range tasks {
		if !f.Ready {
			continue
		}
		lane := Lane{AccountID: f.AccountID, RepoID: f.RepoID, Template: f.Template, Priority: f.Priority}
		if err := QueueChanged.Send(tx, QueueChange{Lane: lane, Ready: 1, Created: f.CreatedAt}); err != nil {
			return err
		}
	}
	return nil
}

// HoldBack makes a pending, locked task wait for the open task with, which works on
// the same paths. It records the event and has hub wake those who wait for the task or
// the queue.
func HoldBack(tx *db.Tx, hub *event.Hub, t *Row, with string, paths []string) error {
	t.ConflictWith, t.ConflictAt = &with, &tx.Now
	t.ConflictPaths = db.JSON[[]string]{V: append([]string{}, paths...)}
	if err := store(tx, t, Pending); err != nil {
		return err
	}
	return tell(hub, tx, t, heldBackEvent, heldBackData{ConflictWith: with, Paths: t.ConflictPaths.V, Reason: HoldConflict})
}

// endConflicts ends the wait of the tasks that are held back for t, if the move of t
// changes what they conflict with: t is not open any more, or is a pull request now.
func endConflicts(tx *db.Tx, t *Row, from Status) error {
	if !from.open() || t.Status.open() && t.Status != AwaitingCI {
		return nil
	}
	freed, err := clearBehind.All(tx, t.ID)
	if err != nil {
		return err
	}
	return sendReady(tx, freed)
}

// WorkChanged ends the wait of the tasks that are held back for t, because the pull
// request of t has another head. The next claim holds them back again if they still
// conflict.
func (s *Service) WorkChanged(tx *db.Tx, t *Row) error {
	freed, err := clearBehind.All(tx, t.ID)
	if err != nil {
		return err
	}
	return s.freed(tx, t.AccountID, freed)
}

// PolicyChanged ends the wait of the tasks of tx.Account that are held back in a
// repository, because its policy may treat conflicts otherwise now.
func (s *Service) PolicyChanged(tx *db.Tx, repoID string) error {
	freed, err := clearInRepo.All(tx, repoID)
	if err != nil {
		return err
	}
	return s.freed(tx, tx.Account, freed)
}

// freed counts tasks of an account that are not held back any more and wakes those
// who wait for its queue.
func (s *Service) freed(tx *db.Tx, account string, all []freed) error {
	if len(all) > 0 {
		s.Hub.Notify(tx, event.QueueTopic(account), AnyQueue)
	}
	return sendReady(tx, all)
}

// Unmerged returns the task on whose work the task was begun, if that work is not
// merged; dropped tells that it will not be.
func Unmerged(tx *db.Tx, taskID string) (on string, dropped bool, err error) {
	t, ok, err := Get(tx, tx.Account, taskID)
	if err != nil || !ok || t.StackedOn == nil {
		return "", false, err
	}
	below, ok, err := Get(tx, tx.Account, *t.StackedOn)
	if err != nil || !ok || below.Status.succeeded() {
		return "", false, err
	}
	return below.ID, below.Status.Terminal(), nil
}

// Wake ends the wait before the next try of the tasks of an account whose wait is
// over, at most 64 at once.
func Wake(tx *db.Tx, account string) error {
	due, err := Due(tx, account)
	if err != nil {
		return err
	}
	if _, err := LockAll(tx, account, due); err != nil {
		return err
	}
	for _, id := range due {
		freed, err := wakeUp.All(tx, account, id)
		if err != nil {
			return err
		}
		if err := sendReady(tx, freed); err != nil {
			return err
		}
	}
	return nil
}
