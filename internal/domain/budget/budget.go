// Package budget keeps what models cost within the limits that people set. A
// call to a model is paid in two steps. Before it is made, the most that it can
// cost is set aside on every meter it counts for: the account's and the
// member's of the month, the plan's, the task's and the run's. Afterwards what
// it did cost is spent, and the rest is free again. So no meter ever exceeds
// its limit, however many calls are under way on however many nodes.
//
// Setting aside costs a commit, and calls are many; so a node sets a little
// more aside than a call needs and hands it out from memory (a purse for each
// session). When a node dies, what its purses still held counts as spent: a
// call may have been under way. A node that only seemed dead takes it back when
// it next settles or sets aside.
//
// A model whose price is not known cannot be held to a limit in dollars: where
// one holds its calls are refused, and elsewhere they are counted apart. A price
// of nothing is a price.
package budget

import (
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// Scopes of meters, from the widest.
const (
	Account = "account" // a month
	Member  = "member"  // a month of what one person asked for, and what followed from it
	Plan    = "plan"
	Task    = "task"
	Run     = "run"
)

// SlugExhausted says that a limit leaves no room for a call.
const SlugExhausted = "budget_exhausted"

const (
	// spare is what a node sets aside beyond what a call needs: a quarter of a
	// dollar. It bounds what a dead node is believed to have spent.
	spare = 250_000
	// share of what is left of a limit that a spare may take, so that sessions
	// under one limit do not hold it up between them.
	share = 8
	// idle is how long a purse that nobody uses is kept.
	idle = 30 * time.Second
	// leaseTime is how long a purse is its node's without a sign of life.
	leaseTime = 2 * time.Minute
	// afterlife is how long a node that was given up for dead may still turn out
	// to be alive. No call to a model takes as long.
	afterlife = 24 * time.Hour
)

// Meter is one thing that money is counted for.
type Meter struct {
	Scope  string `json:"s"`
	Ref    string `json:"r"`           // id of the account, person, plan, task or run
	Period string `json:"p,omitempty"` // YYYY-MM; empty: for ever
	limit  *int64 // micro-dollars; nil: none
}

// month is the period of meters that start anew.
func month(now time.Time) string { return now.UTC().Format("2006-01") }

// balance is the state of a meter.
type balance struct{ Reserved, Spent int64 }

// room is what is left on the tightest of the meters; nil if none has a limit.
func room(meters []Meter, balances []balance) (left int64, tight *Meter) {
	for i := range meters {
		m := &meters[i]
		if m.limit == nil {
			continue
		}
		if r := *m.limit - balances[i].Reserved - balances[i].Spent; tight == nil || r < left {
			left, tight = r, m
		}
	}
	return left, tight
}

// grant decides how much to set aside when a purse lacks between least and most.
func grant(least, most, left int64, limited bool) (amount int64, ok bool) {
	switch {
	case limited && (left <= 0 || left < least):
		return 0, false
	case most == 0: // a call without a price
		return 0, true
	case !limited:
		return most + spare, true
	case left <= most:
		return left, true
	}
	return most + min(spare, (left-most)/share), true
}

// names are how limits are called to people.
var names = map[string]string{
	Account: "The account's budget of this month", Member: "The member's budget of this month",
	Plan: "The plan's budget", Task: "The task's budget", Run: "The run's budget",
}

// exhausted is the refusal of a call that a limit has no room for.
func exhausted(scope string) *fault.Error {
	return fault.Newf(fault.PaymentRequired, SlugExhausted, "%s has no room for another call.", names[scope])
}

// meters are what a session's calls count for, with their limits, in the order
// in which they are locked.
func (s *Service) meters(tx *db.Tx, sub subject) ([]Meter, error) {
	now, user, plan := month(tx.Now), sub.Person, sub.PlanID
	var defaults Defaults
	var err error
	if sub.RepoID != nil {
		if defaults, err = s.Work.Limits(tx, *sub.RepoID); err != nil {
			return nil, err
		}
	}
	set, err := selectLimits.All(tx, limitsArgs{AccountID: sub.AccountID, UserID: user, PlanID: plan})
	if err != nil {
		return nil, err
	}
	limit := func(scope string) *int64 {
		for i := range set {
			if set[i].Scope == scope {
				return &set[i].Micros
			}
		}
		return nil
	}
	meters := []Meter{{Account, sub.AccountID, now, lower(sub.CapMicros, limit(Account))}}
	if user != "" {
		meters = append(meters, Meter{Member, user, now, limit(Member)})
	}
	if plan != "" {
		meters = append(meters, Meter{Plan, plan, "", limit(Plan)})
	}
	// What looks after a pull request is part of the work that made it, and may
	// have a limit of its own beside that one's.
	looksAfter := sub.TaskID != nil && sub.Served != nil && *sub.Served != *sub.TaskID
	whole := func(micros *int64) *int64 {
		if micros == nil {
			return defaults.Task
		}
		return micros
	}
	switch {
	case looksAfter:
		meters = append(meters, Meter{Task, *sub.Served, "", whole(sub.ServedMicros)}, Meter{Task, *sub.TaskID, "", sub.TaskMicros})
	case sub.TaskID != nil:
		meters = append(meters, Meter{Task, *sub.TaskID, "", whole(sub.TaskMicros)})
	}
	if sub.RunID != nil {
		meters = append(meters, Meter{Run, *sub.RunID, "", defaults.Run})
	}
	return meters, nil
}

// Defaults are the limits that a repository's policy sets, in micro-dollars.
type Defaults struct {
	Task *int64 // of a task that names none
	Run  *int64
}

// lower is the lower of two limits.
func lower(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}
