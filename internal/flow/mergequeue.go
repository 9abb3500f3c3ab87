package flow

import (
	"strconv"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/ci"
	"yardmaster/internal/domain/mergequeue"
	"yardmaster/internal/domain/pull"
	"yardmaster/internal/domain/pull/merge"
	"yardmaster/internal/domain/pull/record"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
)

// MergeQueue implements pull.Queue.
type MergeQueue struct{ *mergequeue.Service }

// Admit tells whether an approved merge may be made now.
func (q MergeQueue) Admit(tx *db.Tx, r repo.Ref, m merge.QueueItem, base string, atHost bool) (merge.Turn, error) {
	t, err := q.Service.Admit(tx, r, mergequeue.Item(m), base, atHost)
	return merge.Turn(t), err
}

// Failure answers why a head was thrown out of its queue by its check.
func (MergeQueue) Failure(tx *db.Tx, prID, headSHA string) (why, log string, ok bool, err error) {
	return mergequeue.Failure(tx, prID, headSHA)
}

// Refusals counts how often the host did not take an order into its queue.
func (MergeQueue) Refusals(tx *db.Tx, actionID, headSHA string) (int64, error) {
	return mergequeue.Refusals(tx, actionID, headSHA)
}

// Places answers the places of pull requests in queues, by id.
func (MergeQueue) Places(tx *db.Tx, prIDs []string) (map[string]record.QueuePlace, error) {
	places, err := mergequeue.Places(tx, prIDs)
	out := make(map[string]record.QueuePlace, len(places))
	for prID, p := range places {
		out[prID] = record.QueuePlace{Queue: string(p.Queue), State: string(p.State), Position: p.Position, At: p.At}
	}
	return out, err
}

// MergeOrders implements mergequeue.Orders.
type MergeOrders struct{}

// Standing answers those of the orders that stand.
func (MergeOrders) Standing(tx *db.Tx, ids []string) (map[string]mergequeue.Order, error) {
	orders, err := record.StandingOrders(tx, ids)
	out := make(map[string]mergequeue.Order, len(orders))
	for orderID, o := range orders {
		out[orderID] = mergequeue.Order{HeadSHA: o.HeadSHA, BaseRef: o.BaseRef}
	}
	return out, err
}

// QueueChecks implements mergequeue.Checks.
type QueueChecks struct {
	Checks *ci.Service
	Tasks  *task.Service
}

// Check has a commit checked by the command of its repository, and by its host.
func (q QueueChecks) Check(tx *db.Tx, r repo.Ref, base, sha string, atHost bool) (taskID string, err error) {
	if atHost {
		if err := q.Checks.FollowGroup(tx, r, base, sha); err != nil {
			return "", err
		}
	}
	if r.Policy.Checks.Command == "" {
		return "", nil
	}
	return q.Checks.QueueCommit(tx, r, sha)
}

// Result answers what is known of the checks of a commit.
func (QueueChecks) Result(tx *db.Tx, r repo.Ref, sha string, atHost bool) (out mergequeue.Result, err error) {
	own := mergequeue.Result{State: mergequeue.CheckPassed}
	c, checked, err := ci.OfCommit(tx, r.ID, sha)
	if err != nil {
		return out, err
	}
	if checked {
		own = ownResult(c)
	}
	if !atHost {
		return own, nil
	}
	h, followed, err := ci.AtHostOf(tx, r.ID, sha)
	if err != nil || !followed {
		return own, err
	}
	host := mergequeue.Result{State: mergequeue.CheckPassed, Why: h.Why}
	switch {
	case h.Result == ci.HostFailed:
		host.State = mergequeue.CheckFailed
		f, _, err := ci.AtHost(tx, r.ID, sha)
		if err != nil {
			return out, err
		}
		host.Log = f.Log
	case h.Result == ci.HostPending && h.Hold != "":
		host.State = mergequeue.CheckLost
	case h.Result == ci.HostPending:
		host.State = mergequeue.CheckPending
	}
	for _, state := range []string{mergequeue.CheckFailed, mergequeue.CheckPending, mergequeue.CheckLost} {
		switch state {
		case own.State:
			return own, nil
		case host.State:
			return host, nil
		}
	}
	return mergequeue.Result{State: mergequeue.CheckPassed}, nil
}

// ownResult is what the command of a repository said.
func ownResult(c ci.CommitResult) mergequeue.Result {
	switch c.Status {
	case ci.Passed:
		return mergequeue.Result{State: mergequeue.CheckPassed}
	case ci.Failed:
		why := "the check failed"
		if c.ExitCode != nil {
			why = "the check exited with " + strconv.FormatInt(*c.ExitCode, 10)
		}
		return mergequeue.Result{State: mergequeue.CheckFailed, Why: why, Log: c.Output}
	case ci.Lost, ci.Cancelled:
		return mergequeue.Result{State: mergequeue.CheckLost, Why: "the check ended without a result"}
	}
	return mergequeue.Result{State: mergequeue.CheckPending}
}

// Stop ends the task of a check that is of no use any more.
func (q QueueChecks) Stop(tx *db.Tx, taskID string) error { return StopTask(q.Tasks)(tx, taskID) }

// WakeQueues has merge queues look at the end of the check of a commit that is the head of
// no pull request.
func WakeQueues(queues *mergequeue.Service) func(*db.Tx, ci.End) error {
	return func(tx *db.Tx, e ci.End) error {
		if e.PRID == "" {
			queues.Checked(tx)
		}
		return nil
	}
}

// WakeForHost is WakeQueues for the checks that a host has of a commit.
func WakeForHost(queues *mergequeue.Service) func(*db.Tx, ci.HostEnd) error {
	return func(tx *db.Tx, _ ci.HostEnd) error {
		queues.Checked(tx)
		return nil
	}
}

// RejectHead moves a pull request on whose head was thrown out of its merge queue.
func RejectHead(pulls *pull.Service) func(*db.Tx, mergequeue.ThrownOut) error {
	return func(tx *db.Tx, o mergequeue.ThrownOut) error { return pulls.Rejected(tx, merge.Rejection(o)) }
}
