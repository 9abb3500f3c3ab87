package queue

import (
	"cmp"
	"slices"
	"time"

	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// Box is a box as the queue sees it.
type Box struct {
	ID        string
	Name      string
	AccountID string // where it is enrolled
	Target    string // shared, org or user
	OwnerID   string // the account or user it serves; empty when shared
	Enrolled  bool   // neither draining nor revoked
	Online    bool
	Left      bool   // it was stopped, and has not come back
	Unfit     string // why it can carry out no run; empty if it can
	Slots     int64
	Busy      int64 // tasks it holds
	Agents    []string
	Missing   map[string]string   // what keeps other agents on it from being used, by their names
	Isolation []string            // the levels that its sandbox has
	Holds     map[string][]string // what each of them held when it was last tried
	LastBeat  time.Time
	LastClaim time.Time
}

// Need is what a task demands of a box. The agents builtin and command come
// with every box.
type Need struct {
	Agent     string
	Isolation string // the least acceptable: bubblewrap, landlock, best, none; empty is best
	NoKey     string // what key the account lacks for it, behind "a key"; empty: none
	// WrongProvider is the one that its template names, if the agent cannot ask it.
	WrongProvider string
	NoModel       bool // nothing names a model: neither the template nor the provider of its key
}

// Best is the demand of whoever names no level: the best that the box has, but
// none only on a member's own box.
const Best = "best"

var isolationRank = map[string]int{"none": 0, "": 1, Best: 1, "landlock": 2, "bubblewrap": 3}

func (b *Box) serves(t *task.Row) bool {
	return b.Target != "user" || t.RequestedBy != nil && *t.RequestedBy == b.OwnerID
}

// takesWork tells whether the box is to be given new work at all.
func (b *Box) takesWork() bool { return b.Enrolled && b.Unfit == "" && !b.Left }

func (b *Box) hasAgent(n Need) bool {
	return n.Agent == "builtin" || n.Agent == "command" || slices.Contains(b.Agents, n.Agent)
}

// isolates tells whether agents can be held as the task demands. A level that
// does not hold what its name promises is better than none, and satisfies nobody
// who demands it. A box that has not said what it offers offers nothing, not
// even none.
func (b *Box) isolates(n Need) bool {
	best := -1
	for _, level := range b.Isolation {
		rank := isolationRank[level]
		if !protocol.Keeps(level, b.Holds[level]) {
			rank = min(rank, isolationRank[Best])
		}
		best = max(best, rank)
	}
	least := isolationRank[n.Isolation]
	if b.Target == "user" && least == isolationRank[Best] {
		least = isolationRank["none"]
	}
	return best >= least
}

// Stricter is the more demanding of two least isolations. One that names no
// level leaves it to the other.
func Stricter(a, b string) string {
	switch unnamed := isolationRank[Best]; {
	case isolationRank[a] == unnamed:
		return cmp.Or(b, Best)
	case isolationRank[b] == unnamed, isolationRank[a] >= isolationRank[b]:
		return a
	}
	return b
}
