package queue

import (
	"time"

	"yardmaster/internal/domain/task"
)

// The order of a queue.
//
// Within a repository the task of the highest priority is claimed first, and of equal
// tasks the oldest. Repositories take turns. A turn costs a repository turnCost points.
// The next turn is that of the repository which has spent the fewest points, less the
// priority of its best task. So ten points of priority are worth one turn: a direct task
// (100) is claimed before the tasks of others (50) unless its repository has had five
// turns more than they, and no repository waits for more than a few turns of each other
// one, however many tasks they have queued. An idle repository saves no points: it comes
// back where the others are. A repository whose tasks no box could take for long is
// served at most maxSaved points ahead of the others when a box can.
//
// A lane is the ready tasks of one repository, template and priority, which the same
// boxes can take. The place of a lane is the points that its repository has spent, less
// its priority. A claim reads lanes to find the next task, so that the search costs the
// same in a long queue as in a short one.
const (
	turnCost = 10
	maxSaved = 100
)

// served returns the clock of the account, and the points that the repository has spent,
// after a turn of a lane with the priority.
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
