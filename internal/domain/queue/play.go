package queue

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"yardmaster/internal/domain/task"
)

// Waiting is a try at a task in a recorded queue.
type Waiting struct {
	ID        string // of the run
	TaskID    string
	Repo      string
	Template  string // empty for checks, which take no seat
	Priority  int64
	CreatedAt time.Time     // of the task: the oldest of a lane is first
	ReadyAt   time.Time     // when a box could have had it
	Takes     time.Duration // how long a box has it
}

// Machines are what a queue is played with.
type Machines struct {
	Slots int // tasks that run at once, over all boxes
	Seats int // tasks but checks that run at once; 0: as many as there are slots
}

// Played is when a try began.
type Played struct {
	ID      string
	BeganAt time.Time
}

// Play plays a queue of an account from its beginning on a virtual clock, and answers the tries in
// the order in which they are claimed. The order is that of lane.go: its arithmetic is called, and
// the statements of store_lane.go, which choose among rows, are what lineup does in memory. That
// both choose alike is held by a test on both databases. Every box can take every task.
func Play(all []Waiting, m Machines) []Played {
	todo := slices.Clone(all)
	slices.SortFunc(todo, func(a, b Waiting) int {
		return cmp.Or(a.ReadyAt.Compare(b.ReadyAt), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.TaskID, b.TaskID),
			cmp.Compare(a.ID, b.ID))
	})
	out := make([]Played, 0, len(todo))
	q, busy, agents := newLineup(), ends{}, 0
	for at := (time.Time{}); len(todo) > 0 || q.ready > 0; {
		for len(busy) < m.Slots {
			w, ok := q.next(m.Seats == 0 || agents < m.Seats)
			if !ok {
				break
			}
			out = append(out, Played{w.ID, at})
			heap.Push(&busy, end{at.Add(w.Takes), w.Template != ""})
			if w.Template != "" {
				agents++
			}
		}
		switch {
		case len(busy) > 0 && (len(todo) == 0 || !todo[0].ReadyAt.Before(busy[0].at)):
			at = busy[0].at
		case len(todo) > 0:
			at = todo[0].ReadyAt
		default:
			return out // nothing can begin any more: there are no slots
		}
		for len(busy) > 0 && !busy[0].at.After(at) {
			if heap.Pop(&busy).(end).agent {
				agents--
			}
		}
		for len(todo) > 0 && !todo[0].ReadyAt.After(at) {
			q.add(todo[0])
			todo = todo[1:]
		}
	}
	return out
}

// end is when a slot is free again.
type end struct {
	at    time.Time
	agent bool
}

type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].at.Before(e[j].at) }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// lineup is the lanes of an account in memory.
type lineup struct {
	clock int64
	repos map[string]*turns
	ready int
}

// turns are the lanes of a repository. An index of all lanes would be made anew by every claim,
// which moves those of one repository.
type turns struct {
	lanes      map[task.Lane]*inMemory
	all, check *inMemory // the first with ready tasks, and the first of checks
}

// inMemory is a lane with its ready tasks, the oldest first.
type inMemory struct {
	lane
	tasks []Waiting
}

// newLineup is a queue in which nobody has had a turn.
func newLineup() *lineup {
	return &lineup{clock: -task.DefaultPriority, repos: map[string]*turns{}}
}

// add is growLane and openLane.
func (q *lineup) add(w Waiting) {
	r := q.repos[w.Repo]
	if r == nil {
		r = &turns{lanes: map[task.Lane]*inMemory{}}
		q.repos[w.Repo] = r
	}
	key := task.Lane{RepoID: w.Repo, Template: w.Template, Priority: w.Priority}
	l := r.lanes[key]
	if l == nil {
		l = &inMemory{lane: lane{Lane: key, Place: r.begin(q.clock) - w.Priority}}
		r.lanes[key] = l
	} else if l.Ready == 0 {
		l.Place = max(l.Place, r.begin(q.clock)-w.Priority)
	}
	if created := w.CreatedAt.UnixMicro(); l.Ready == 0 || created < l.HeadAt {
		l.HeadAt = created
	}
	at, _ := slices.BinarySearchFunc(l.tasks, w, func(a, b Waiting) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.TaskID, b.TaskID))
	})
	l.tasks = slices.Insert(l.tasks, at, w)
	l.Ready, q.ready = l.Ready+1, q.ready+1
	r.order()
}

// begin is where a lane of the repository comes in.
func (r *turns) begin(clock int64) int64 {
	turn := clock + task.DefaultPriority
	for _, l := range r.lanes {
		turn = max(turn, l.Place+l.Priority)
	}
	return turn
}

// order finds the first lanes again.
func (r *turns) order() {
	r.all, r.check = nil, nil
	for _, l := range r.lanes {
		if l.Ready > 0 {
			r.all = firstOf(r.all, l)
			if l.Template == "" {
				r.check = firstOf(r.check, l)
			}
		}
	}
}

// next is selectLanes and selectHead, and what a claim writes: setClock, setTurn and setHead.
// Without a seat only checks are claimed.
func (q *lineup) next(seat bool) (Waiting, bool) {
	var first *inMemory
	for _, r := range q.repos {
		l := r.all
		if !seat {
			l = r.check
		}
		if l != nil {
			first = firstOf(first, l)
		}
	}
	if first == nil {
		return Waiting{}, false
	}
	w := first.tasks[0]
	first.tasks, first.Ready, q.ready = first.tasks[1:], first.Ready-1, q.ready-1
	var spent int64
	q.clock, spent = turn{Place: first.Place, Clock: q.clock}.served(first.Priority)
	for _, l := range q.repos[w.Repo].lanes {
		l.Place = max(l.Place, spent-l.Priority)
	}
	if first.Ready > 0 {
		first.HeadAt = first.tasks[0].CreatedAt.UnixMicro()
	}
	q.repos[w.Repo].order()
	return w, true
}

// firstOf is the order of selectLanes.
func firstOf(a, b *inMemory) *inMemory {
	if a == nil || cmp.Or(cmp.Compare(b.Place, a.Place), cmp.Compare(b.HeadAt, a.HeadAt), compareLanes(b.Lane, a.Lane)) < 0 {
		return b
	}
	return a
}
