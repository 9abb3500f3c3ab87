package queue

import (
	"time"

	"yardmaster/internal/domain/task"
)

// The order of a queue.
//
// Within a repository the task of the highest priority is claimed first, and
// of equals the oldest. Repositories take turns: a turn costs the repository
// that had it turnCost points, and next is the one that has spent the fewest,
// each having its best task's priority for credit. So ten points of priority
// are worth one turn: a direct task (100) goes before what others have in the
// queue (50) unless its repository has had five turns too many, and no
// repository waits for more than a few turns of each other one, however much
// they have queued. An idle repository saves nothing up: it comes back where
// the others are. One whose tasks no box could take for long is served at most
// maxSaved points ahead of the others when one can.
//
// A lane is the ready tasks of one repository, template and priority: what
// holds for one of them with regard to a box holds for all. Its place is what
// its repository has spent, less its priority. Nothing but lanes is looked at
// to find the next task, so that finding it costs the same in a long queue as
// in a short one.
const (
	turnCost = 10
	maxSaved = 100
)

// served is the account's clock and what the repository has spent after a lane
// of the priority, which had the turn, was served.
func (t turn) served(priority int64) (clock, spent int64) {
	clock = max(t.Clock, t.Place)
	return clock, max(t.Place+priority, clock+task.DefaultPriority-maxSaved) + turnCost
}

// sample returns a task that stands for all tasks of the lane, as far as boxes are
// concerned.
func sample(l task.Lane) task.Row {
	t := task.Row{
		AccountID: l.AccountID, RepoID: l.RepoID, Template: l.Template, Priority: l.Priority,
		Kind: task.KindWork, Status: task.Pending, NotBefore: time.UnixMicro(0),
	}
	if l.Template == "" {
		t.Kind = task.KindCI
	}
	return t
}
