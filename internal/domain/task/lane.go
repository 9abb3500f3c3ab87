package task

import (
	"cmp"
	"slices"
	"time"
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
	return clock, max(t.Place+priority, clock+defaultPriority-maxSaved) + turnCost
}

// ready tells whether a task waits for nothing but a box.
func (t *Row) ready() bool {
	return t.Status == Pending && t.WaitingDeps == 0 && t.NotBefore.UnixMicro() == 0 && t.ConflictWith == nil
}

// sample is a task as every one in the lane is, as far as boxes are concerned.
func (l lane) sample() Row {
	t := Row{AccountID: l.AccountID, RepoID: l.RepoID, Template: l.Template, Priority: l.Priority, Kind: KindWork, Status: Pending, NotBefore: time.UnixMicro(0)}
	if l.Template == "" {
		t.Kind = KindCI
	}
	return t
}

// ahead is how many of the lanes' tasks are claimed before one that has inLane
// others of its own lane before it, as far as can be told: if every box could
// take each of them, and none was added.
func ahead(lanes []lane, own lane, inLane int64) (n int64) {
	// What each repository's tasks are worth, in its own order.
	byRepo := map[string][]lane{}
	spent := int64(-1 << 62)
	for _, l := range lanes {
		byRepo[l.RepoID] = append(byRepo[l.RepoID], l)
		if l.RepoID == own.RepoID {
			spent = max(spent, l.Place+l.Priority)
		}
	}
	if _, ok := byRepo[own.RepoID]; !ok {
		spent = 0
		if len(lanes) > 0 {
			spent = lanes[0].Place + defaultPriority // it comes in where the others are
		}
	}
	for _, l := range byRepo[own.RepoID] {
		if l.Priority > own.Priority {
			n += l.Ready
		}
	}
	n += inLane
	place := spent + n*turnCost - own.Priority
	for repo, ls := range byRepo {
		if repo == own.RepoID {
			continue
		}
		slices.SortFunc(ls, func(a, b lane) int { return cmp.Compare(b.Priority, a.Priority) })
		var taken int64
		for _, l := range ls {
			first := l.Place + taken*turnCost // the place of its first task
			if first >= place {
				break
			}
			got := min(l.Ready, (place-first-1)/turnCost+1)
			n, taken = n+got, taken+got
		}
	}
	return n
}
