package task

import (
	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// Topic is the list of tasks that clients follow.
var Topic = event.Tasks

// Change is the part of the data that every event of a task has.
type Change struct {
	PlanID *string `json:"plan_id,omitempty" doc:"the plan that the task is of"` // a client that follows plans sees the task move
	Status string  `json:"status" doc:"state of the task after the event"`
}

func (c *Change) change() *Change { return c }

// The data of events, with Change.
type (
	createdData struct {
		Change
		Kind  string `json:"kind" doc:"what the task is for"`
		Sink  string `json:"sink" doc:"where the task went"`
		Title string `json:"title" doc:"its title"`
	}
	claimedData struct {
		Change
		Attempt int64  `json:"attempt" doc:"which try of the task this is, from 1"`
		BoxID   string `json:"box_id" doc:"the box that claimed it"`
		RunID   string `json:"run_id" doc:"the run of this try"`
	}
	startedData struct {
		Change
		RunID *string `json:"run_id" doc:"the run that has begun to work"`
	}
	shippedData struct {
		Change
		PRID *string `json:"pr_id" doc:"the pull request with its work"`
	}
	failedData struct {
		Change
		FailureKind string `json:"failure_kind" doc:"why"`
	}
	requeuedData struct {
		Change
		Charged     *int64  `json:"charged,omitempty" doc:"how many tries have been charged to the task"`
		FailureKind *string `json:"failure_kind,omitempty" doc:"why the try failed; left out if its run was taken from it"`
		Reason      string  `json:"reason,omitempty" doc:"why its run was taken from it"`
		WaitMS      *int64  `json:"wait_ms,omitempty" doc:"milliseconds until the next try"`
	}
	releasedData struct {
		Change
		Because string `json:"because,omitempty" doc:"the task that was redispatched, or relinked; left out if a person released it"`
	}
	redispatchedData struct {
		Change
		FailureKind  *string `json:"failure_kind" doc:"why it had failed"`
		PriorAttempt int64   `json:"prior_attempt" doc:"how many tries there were before"`
		Unbound      bool    `json:"unbound,omitzero" doc:"true: from now on git goes without the token that the requester has bound, because somebody else has given guidance; left out otherwise"`
	}
	stuckData struct {
		Change
		FailureKind string `json:"failure_kind,omitempty" doc:"why, where that is known"`
	}
	heldBackData struct {
		Change
		ConflictWith string   `json:"conflict_with" doc:"the task whose work changes the same files"`
		Paths        []string `json:"paths" doc:"some of the files"`
		Reason       string   `json:"reason" doc:"what holds it"`
	}
)

// The events of a task.
var (
	createdEvent    = event.Declare[createdData]("task.created", Topic, "A task was created.")
	claimedEvent    = event.Declare[claimedData]("task.claimed", Topic, "A box claimed the task for its next try.")
	startedEvent    = event.Declare[startedData]("task.started", Topic, "The agent began to work on the task.")
	CompletedEvent  = event.Declare[Change]("task.completed", Topic, "The task ended well, without a pull request.")
	awaitingCIEvent = event.Declare[shippedData]("task.awaiting_ci", Topic,
		"The work is in a pull request whose checks have yet to pass.")
	awaitingReviewEvent = event.Declare[shippedData]("task.awaiting_review", Topic, "The checks passed; a person has yet to decide.")
	mergeableEvent      = event.Declare[shippedData]("task.mergeable", Topic, "The pull request of the task may be merged.")
	MergedEvent         = event.Declare[shippedData]("task.merged", Topic, "The work of the task was merged.")
	FailedEvent         = event.Declare[failedData]("task.failed", Topic, "The task failed for good.")
	HeldEvent           = event.Declare[failedData]("task.held", Topic, "The task waits for a person.")
	releasedEvent       = event.Declare[releasedData]("task.released", Topic, "The task is back in the queue with all its tries.")
	requeuedEvent       = event.Declare[requeuedData]("task.requeued", Topic, "A try ended early or failed; the task is back in the queue.")
	redispatchedEvent   = event.Declare[redispatchedData]("task.redispatched", Topic,
		"Somebody put the task, which had failed, back into the queue.")
	cancelledEvent = event.Declare[Change]("task.cancelled", Topic, "The task was cancelled.")
	stuckEvent     = event.Declare[stuckData]("task.stuck", Topic, "The task makes no progress.")
	unstuckEvent   = event.Declare[Change]("task.unstuck", Topic, "The task makes progress again.")
	hurriedEvent   = event.Declare[Change]("task.hurried", Topic, "Somebody ended the wait before the next try of the task.")
	heldBackEvent  = event.Declare[heldBackData]("task.held_back", Topic, "The task waits for another one that changes the same files.")
)

// Resumed are the events after which a task that had failed, or was held, waits for nobody.
var Resumed = []event.Any{
	releasedEvent, redispatchedEvent, cancelledEvent, claimedEvent, awaitingCIEvent, MergedEvent, CompletedEvent,
}

// Move is a task that has gone from one state to another, or was created.
type Move struct {
	Task *Row
	From Status // empty: it was created
}

// Moved is sent when a task has gone to another state, before the event of it
// is recorded. Subscribers may move other tasks.
var Moved = event.DeclareSignal[Move]("task.moved", "A task has gone to another state.")

// StuckChanged is sent when a task becomes stuck, is stuck for another reason, or is not
// stuck any more.
var StuckChanged = event.DeclareSignal[*Row]("task.stuck_changed", "A task is stuck, or is not any more.")

// Unwanted is an in-flight task whose run is to end, and why: StopCancelled,
// StopReassigned, StopRedispatched or StopRepoGone.
type Unwanted struct {
	Task *Row
	Why  string
}

// RunUnwanted is sent, before the task is moved, when its live run is to end and
// the box is to be told.
var RunUnwanted = event.DeclareSignal[Unwanted]("task.run_unwanted", "The run of a task is to end.")

// tell records an event of t and wakes those who wait for t or for a queue. Every event
// wakes the queue, because a move that frees a slot or a seat makes other tasks
// claimable.
func tell[T any, P interface {
	*T
	change() *Change
}](hub *event.Hub, tx *db.Tx, t *Row, kind event.Kind[T], data T) error {
	c := P(&data).change()
	c.Status, c.PlanID = string(t.Status), t.PlanID
	hub.Notify(tx, event.TaskTopic(t.ID), event.QueueTopic(t.AccountID), AnyQueue)
	return kind.Record(tx, event.Subject{ID: t.ID, Account: t.AccountID, RepoID: t.RepoID}, data)
}
