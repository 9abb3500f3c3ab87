package queue

import (
	"cmp"
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/fleet"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// Box is a machine that claims tasks, as the queue sees it.
type Box struct {
	ID        string
	Name      string
	AccountID string          // where it is enrolled
	Target    string          // shared, org or user; fleet.Lent while it is lent to others
	Repos     map[string]bool // of the account that is looked at, to which it is lent
	OwnerID   string          // the user whose work alone it takes; empty for all others
	Enrolled  bool            // neither draining nor revoked
	Online    bool
	Left      bool              // the box was stopped, and has not come back
	Unfit     string            // why the box can carry out no run; empty if it can
	UnfitFor  map[string]string // the repositories, owner/name, of which it can carry out no run, and why
	Slots     int64
	Busy      int64 // tasks that the box holds
	Agents    []string
	Missing   map[string]string   // why other agents on the box cannot be used, by their names
	Isolation []string            // the levels of its sandbox
	Holds     map[string][]string // by level: what held when the level was last tried, see protocol.Keeps
	LastBeat  time.Time
	LastClaim time.Time
}

// Need is what a task demands of a box and of its account's keys. Every box has the
// agents builtin and command.
type Need struct {
	Agent     string
	Isolation string // the least acceptable: bubblewrap, landlock, best, none; empty is best
	NoKey     string // the key that the account lacks, in words that follow "a key"; empty: none
	// Rest is that of the account's keys, if every one that fits rests; the zero value: one serves.
	Rest Rest
	// Lent are the repositories for which another account has lent a key that the account lacks
	// or that serves while its own rest, by id: the rest of what is lent, if all of it rests.
	Lent map[string]Rest
	// Own are the people who have a key of their own that serves while the account's rest.
	Own []string
	// WrongProvider is the provider that the template names, if the agent cannot use it.
	WrongProvider string
	// LackAt is since when one of NoKey, WrongProvider and NoModel is so, as far as known.
	LackAt  time.Time
	NoModel bool // neither the template nor the provider of the key names a model
}

// Rest is until when no call goes over keys, and why.
type Rest struct {
	Since, Until time.Time
	Why          string // in words: "the provider's rate limit holds"
	Passes       bool   // it is short, and nobody has to do anything
}

// lacksKey tells whether no key fits what is done in a repository.
func (n Need) lacksKey(repoID string) bool {
	_, lent := n.Lent[repoID]
	return n.NoKey != "" && !lent
}

// restIn is the rest of the keys of an account, and of those that are lent for a repository.
func (n Need) restIn(repoID string) Rest {
	if lent, ok := n.Lent[repoID]; ok && (n.NoKey != "" || lent.Until.Before(n.Rest.Until)) {
		return lent
	}
	return n.Rest
}

// rests tells whether every key that fits a task rests, and until when: a run of it would be
// parked at its first call. A row that stands for the tasks of several people does not rest if
// one of them may go over a key of their own.
func (n Need) rests(t *task.Row) (Rest, bool) {
	out := n.restIn(t.RepoID)
	own := t.ID == "" && len(n.Own) > 0 // one of several people may have it
	if t.RequestedBy != nil {
		own = !t.Unbound && slices.Contains(n.Own, *t.RequestedBy)
	}
	return out, !out.Until.IsZero() && !own
}

// Best is the demand for isolation where none is named: the best level of the box,
// where the level none will do only on a member's own box.
const Best = "best"

var isolationRank = map[string]int{"none": 0, "": 1, Best: 1, "landlock": 2, "bubblewrap": 3}

func (b *Box) serves(t *task.Row) bool {
	if b.Target == fleet.Lent {
		return b.Repos[t.RepoID]
	}
	return b.Target != "user" || t.RequestedBy != nil && *t.RequestedBy == b.OwnerID
}

// takesWork tells whether the box may claim tasks at all.
func (b *Box) takesWork() bool { return b.Enrolled && b.Unfit == "" && !b.Left }

func (b *Box) hasAgent(n Need) bool {
	return n.Agent == "builtin" || n.Agent == "command" || slices.Contains(b.Agents, n.Agent)
}

// isolates tells whether the box can isolate agents as n demands. A level that did not
// hold what its name promises, when it was tried, counts as Best and not as that level.
// A box that has not said which levels it has meets no demand, not even none.
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
	if b.Target == fleet.Lent { // whatever the account demands: it is strangers' work
		least = max(least, isolationRank[Best])
	}
	return best >= least
}

// Stricter returns the more demanding of two least isolations. One that names no level
// leaves the decision to the other.
func Stricter(a, b string) string {
	switch unnamed := isolationRank[Best]; {
	case isolationRank[a] == unnamed:
		return cmp.Or(b, Best)
	case isolationRank[b] == unnamed, isolationRank[a] >= isolationRank[b]:
		return a
	}
	return b
}

// lend reads to which repositories of an account the box is lent, if it is.
func (b *Box) lend(tx *db.Tx, account string) error {
	if b.Target != fleet.Lent {
		return nil
	}
	ids, err := fleet.LentTo(tx, b.ID, account)
	b.Repos = make(map[string]bool, len(ids))
	for _, one := range ids {
		b.Repos[one] = true
	}
	return err
}
