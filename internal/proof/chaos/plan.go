package chaos

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"yardmaster/internal/proof/chaos/astray"
)

// lease is how long a disconnected box continues to work; another box gets its work
// after 1.25 times this.
const lease = 6 * time.Second

// action is one kind of step.
type action string

// The faults, and the actions of people.
const (
	serverKilled action = "server killed"
	boxKilled    action = "box killed"
	boxFrozen    action = "box frozen"
	serverFrozen action = "server frozen" // one of several
	serverCut    action = "server cut"    // one of several, from the boxes and the others: nothing arrives
	databaseCut  action = "database cut"  // of one of several servers: nothing arrives
	lineCut      action = "line cut"      // of one box to the bus: nothing arrives
	webCut       action = "web cut"       // of all boxes to the API and the git host
	linesBroken  action = "lines broken"  // every connection is reset
	pushRefused  action = "push refused"  // by the git host, of any task's branch
	serverSet    action = "server's clock set"
	boxSet       action = "box's clock set"
	databaseLost action = "database lost" // PostgreSQL terminates the server's connections

	taskFiled        action = "task filed"
	taskCancelled    action = "task cancelled"
	taskReassigned   action = "task reassigned"
	taskRedispatched action = "task redispatched"
)

// step is one event of a plan.
type step struct {
	at     time.Duration // since the start
	what   action
	target int           // index of the box
	node   int           // index of the server
	length time.Duration // until the step is undone
	ahead  time.Duration // how far a clock is set ahead
	pick   uint64        // chooses among the tasks that exist by then
}

// rank is lower for what is done to one of several nodes.
func rank(what action) int {
	switch what {
	case serverKilled, serverFrozen, serverCut, databaseCut, databaseLost:
		return 0
	}
	return 1
}

// plan draws all steps from the seed. Every fault occurs before one occurs again;
// people act every other second.
func plan(seed uint64, length time.Duration, boxes, nodes int, postgres bool) []step {
	r := rand.New(rand.NewPCG(seed, 0))
	between := func(low, high time.Duration) time.Duration {
		return low + time.Duration(r.Int64N(int64(high-low)))
	}
	kinds := []action{serverKilled, boxKilled, boxFrozen, lineCut, webCut, linesBroken, pushRefused}
	if astray.Possible {
		kinds = append(kinds, serverSet, boxSet)
	}
	if postgres {
		kinds = append(kinds, databaseLost)
	}
	if nodes > 1 { // boxes go to another node, so that it is those that are cut off
		kinds = slices.DeleteFunc(kinds, func(k action) bool { return k == lineCut })
		kinds = append(kinds, serverFrozen, serverCut, databaseCut)
	}
	var steps []step
	var bag []action
	for at := between(2*time.Second, 4*time.Second); at < length; at += between(2*time.Second, 5*time.Second) {
		if len(bag) == 0 {
			bag = slices.Clone(kinds)
			r.Shuffle(len(bag), func(i, k int) { bag[i], bag[k] = bag[k], bag[i] })
			if nodes > 1 && len(steps) == 0 { // what several nodes are about comes first, so that a short run has it
				slices.SortStableFunc(bag, func(a, b action) int { return cmp.Compare(rank(a), rank(b)) })
			}
		}
		s := step{at: at, what: bag[0], target: r.IntN(boxes)}
		bag = bag[1:]
		if nodes > 1 {
			s.node = r.IntN(nodes)
		}
		switch s.what {
		case serverKilled:
			s.length = between(0, lease/2)
		case serverFrozen, serverCut, databaseCut:
			s.length = between(lease/2, 2*lease) // a node counts as live for 8 s
		case boxFrozen:
			s.length = between(lease*5/4, 2*lease) // long enough that another box gets its work
		case serverSet, boxSet:
			if s.ahead = time.Second << r.IntN(15); r.IntN(2) == 0 {
				s.ahead = -s.ahead
			}
		case linesBroken, databaseLost:
		default:
			s.length = between(lease/10, lease*3/2)
		}
		steps = append(steps, s)
	}
	for at := time.Duration(0); at < length; at += between(time.Second, 3*time.Second) {
		s := step{at: at, what: taskFiled, pick: r.Uint64()}
		switch n := r.IntN(100); {
		case n < 10:
			s.what = taskCancelled
		case n < 22:
			s.what = taskReassigned
		case n < 32:
			s.what = taskRedispatched
		}
		steps = append(steps, s)
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Compare(a.at, b.at) })
	return steps
}
