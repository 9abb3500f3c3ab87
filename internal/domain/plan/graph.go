package plan

import (
	"maps"
	"slices"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// cycle finds a circle in a graph of names and the names that each needs. It
// returns the names on the circle, the first again at the end; nil if there is
// none. A needed name that is no key needs nothing.
func cycle(up map[string][]string) []string {
	const open, closed = 1, 2
	state := map[string]int{}
	var path []string
	var walk func(string) []string
	walk = func(at string) []string {
		state[at] = open
		path = append(path, at)
		for _, u := range up[at] {
			switch state[u] {
			case open:
				return append(slices.Clone(path[slices.Index(path, u):]), u)
			case closed:
				continue
			}
			if found := walk(u); found != nil {
				return found
			}
		}
		path = path[:len(path)-1]
		state[at] = closed
		return nil
	}
	for _, at := range slices.Sorted(maps.Keys(up)) {
		if state[at] == 0 {
			if found := walk(at); found != nil {
				return found
			}
		}
	}
	return nil
}

// net holds the groups of a plan with their edges and tasks, as they are read
// for a decision.
type net struct {
	groups []groupRow
	up     map[string][]edgeRow // the groups that each group waits for
	tasks  map[string][]task.Row
	scouts []task.Row // tasks without a group
	idle   []string   // ids of tasks that go on only if a person acts; refresh alone reads them
}

func newNet(groups []groupRow, edges []edgeRow, tasks []task.Row) *net {
	n := &net{groups: groups, up: map[string][]edgeRow{}, tasks: map[string][]task.Row{}}
	for _, e := range edges {
		n.up[e.GroupID] = append(n.up[e.GroupID], e)
	}
	for i := range tasks {
		if g := tasks[i].GroupID; g != nil {
			n.tasks[*g] = append(n.tasks[*g], tasks[i])
		} else {
			n.scouts = append(n.scouts, tasks[i])
		}
	}
	return n
}

func (n *net) group(id string) *groupRow {
	if i := slices.IndexFunc(n.groups, func(g groupRow) bool { return g.ID == id }); i >= 0 {
		return &n.groups[i]
	}
	return nil
}

// order lists the groups so that each comes after all that it waits for.
func (n *net) order() []*groupRow {
	byID := make(map[string]*groupRow, len(n.groups))
	for i := range n.groups {
		byID[n.groups[i].ID] = &n.groups[i]
	}
	out := make([]*groupRow, 0, len(n.groups))
	seen := make(map[string]bool, len(n.groups))
	var visit func(*groupRow)
	visit = func(g *groupRow) {
		if seen[g.ID] {
			return
		}
		seen[g.ID] = true
		for _, e := range n.up[g.ID] {
			visit(byID[e.UpstreamID])
		}
		out = append(out, g)
	}
	for i := range n.groups {
		visit(&n.groups[i])
	}
	return out
}

// lockTasks locks all tasks of the plan, and others, which it returns as well.
// It reads the plan's tasks anew: nobody else can move them any more.
func (n *net) lockTasks(tx *db.Tx, others []string) (map[string]task.Row, error) {
	all := [][]task.Row{n.scouts}
	for _, list := range n.tasks {
		all = append(all, list)
	}
	ids := slices.Clone(others)
	for _, list := range all {
		for i := range list {
			ids = append(ids, list[i].ID)
		}
	}
	locked, err := task.LockAll(tx, tx.Account, ids)
	if err != nil {
		return nil, err
	}
	for _, list := range all {
		for i := range list {
			list[i] = locked[list[i].ID]
		}
	}
	return locked, nil
}

// work lists the ids of the tasks of the groups that count, in their order.
func (n *net) work() (ids []string) {
	for i := range n.groups {
		if g := &n.groups[i]; n.state(g) != Superseded {
			for _, t := range n.tasks[g.ID] {
				ids = append(ids, t.ID)
			}
		}
	}
	return ids
}

// upTasks returns the ids of the tasks that a group waits for.
func (n *net) upTasks(group string) (ids []string) {
	for _, e := range n.up[group] {
		for _, t := range n.tasks[e.UpstreamID] {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// state derives the state of a group from its tasks.
func (n *net) state(g *groupRow) string {
	if g.Closed != "" {
		return g.Closed
	}
	tasks := n.tasks[g.ID]
	if len(tasks) == 0 {
		return Held
	}
	worst := Done
	rank := []string{Done, Ready, Waiting, Running, Held, Stopped, Failed}
	for i := range tasks {
		if is := taskState(&tasks[i]); slices.Index(rank, is) > slices.Index(rank, worst) {
			worst = is
		}
	}
	return worst
}

func taskState(t *task.Row) string {
	switch {
	case t.Status == task.Completed || t.Status == task.Merged:
		return Done
	case t.Status == task.Cancelled:
		return Stopped
	case t.Status == task.Failed:
		return Failed
	case t.Status == task.Held:
		return Held
	case t.Status != task.Pending:
		return Running
	case t.WaitingDeps > 0:
		return Waiting
	}
	return Ready
}

func settled(state string) bool {
	return slices.Contains([]string{Done, Failed, Stopped, Superseded}, state)
}

// progress is the state of a plan and the numbers of its groups.
type progress struct {
	status, bucket      string
	merged, total, held int64
}

// progress derives the state of a plan from its groups.
func (n *net) progress(p *row) progress {
	var out progress
	count := map[string]int64{}
	for i := range n.groups {
		if is := n.state(&n.groups[i]); is != Superseded {
			count[is]++
			out.total++
		}
	}
	out.merged, out.held = count[Done], count[Held]
	over := count[Done] + count[Failed] + count[Stopped]
	switch {
	case p.CancelledAt != nil:
		out.status = Cancelled
	case p.FailedAt != nil:
		out.status = Failed
	case out.total == 0:
		out.status = Drafting
	case out.total == count[Done]:
		out.status = Done
	case out.total == count[Stopped]:
		out.status = Cancelled
	case p.ApprovedAt == nil:
		out.status = Held
	case out.total == over:
		out.status = Failed
	default:
		out.status = Running
	}
	out.bucket = map[string]string{Drafting: BucketActive, Held: BucketHeld, Running: BucketActive, Failed: BucketStalled,
		Done: BucketDone, Cancelled: BucketCancelled}[out.status]
	if out.status == Running && count[Ready]+count[Running] == n.idleGroups() {
		out.bucket = BucketStalled
	}
	return out
}

// idleGroups counts the running groups that go on only if a person acts.
func (n *net) idleGroups() (count int64) {
	for i := range n.groups {
		g := &n.groups[i]
		if n.state(g) == Running && !slices.ContainsFunc(n.tasks[g.ID], func(t task.Row) bool {
			is := taskState(&t)
			return is == Ready || is == Running && !slices.Contains(n.idle, t.ID)
		}) {
			count++
		}
	}
	return count
}

// open tells whether a plan can still be changed. A failed plan can be
// repaired.
func open(status string) bool { return status == Held || status == Running || status == Failed }
