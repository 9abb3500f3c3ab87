// Package budget keeps the cost of models within the limits that people set. A call
// to a model is paid in two steps. Before the call, Reserve sets aside the most that
// it can cost, on every meter that the call counts for: those of the account and the
// member in the month, of the plan, of the task and of the run. After the call,
// Settle spends the cost and frees the rest. So no meter ever exceeds its limit,
// however many calls and nodes there are.
//
// To set an amount aside takes a commit, and calls are frequent; so a node sets
// aside a little more than a call needs and serves further calls from memory, from
// the reserve of their session. What a session does not use comes back when it ends, in the same
// transaction, when it is idle, and when another call would be refused for it. When a node
// dies, the rest of its reserves counts as spent, because calls may not have ended. A node that
// only seemed dead takes the rest back when it next settles or sets aside.
//
// A limit in dollars cannot hold a model without a price: where a limit applies,
// calls to such a model are refused, and elsewhere they are counted apart. A price
// of 0 is a price.
//
//   - budget.go: meters, limits and the rules
//   - room.go: what the limits leave, the one rule for calls and for work that was stopped
//   - reserve.go, settle.go: the Service, Reserve and Settle
//   - giveback.go: what is set aside and not used comes back
//   - gift.go: calls that another account pays
//   - key.go: limits of keys
//   - stop.go: work that may make no further call
//   - goon.go: when such work goes on
//   - loop.go: reservations of dead nodes
//   - forecast.go, warn.go: what a month will cost, and limits that are nearly spent
//   - usage.go, sheet.go: what was spent, part by part, and as a sheet
//   - ops.go, events.go: capabilities, events and signals
//   - store.go, store_stop.go, store_usage.go: the statements
package budget

import (
	"slices"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

// Scopes of meters, from the widest.
const (
	Account = "account" // a month
	Member  = "member"  // a month of the work that one person asked for, and of all that followed from it
	Repo    = "repo"    // a month of the work on one repository
	Plan    = "plan"
	Task    = "task" // with the reviews and repairs of its pull request
	OwnWork = "work" // a task's own work alone, without those
	Run     = "run"
)

// keptShare is the part of a task's budget that its own work leaves to the reviews and repairs
// of its pull request, as a divisor. They may spend what the work has left over, too.
const keptShare = 4

// SlugExhausted is the slug of the refusal of a call because a limit leaves too
// little.
const SlugExhausted = "budget_exhausted"

const (
	// spare is the amount that a node sets aside beyond the need of a call: a quarter
	// of a dollar. It bounds the amount that counts as spent when the node dies.
	spare = 250_000
	// spareShare is the part of the rest of a limit that a spare may have, as a
	// divisor: the sessions under one limit must not use it up with spares.
	spareShare = 8
	// idleTime is how long an unused reserve is kept, and the time between two passes over
	// the reservations.
	idleTime = 30 * time.Second
	// lookTime is the time between two looks at the work that was stopped, if no money came
	// back meanwhile.
	lookTime = 5 * time.Second
	// leaseTime is how long a reservation is its node's without a sign of life.
	leaseTime = 2 * time.Minute
	// writtenOffTime is how long a node that was taken for dead may take back its
	// reservations. No call to a model takes as long.
	writtenOffTime = 24 * time.Hour
)

// Meter is one thing for which money is counted.
type Meter struct {
	Scope  string `json:"s"`
	Ref    string `json:"r"`           // id of the account, person, plan, task or run
	Period string `json:"p,omitempty"` // YYYY-MM; empty: for ever
	limit  *int64 // micro-dollars; nil: none
}

// month is the period of a meter that starts anew each month.
func month(now time.Time) string { return now.UTC().Format("2006-01") }

// balance is the amounts on a meter, in micro-dollars.
type balance struct{ Reserved, Spent int64 }

// limitNames are the names of limits at the beginning of a sentence.
var limitNames = map[string]string{
	Account: "The account's budget of this month", Member: "The member's budget of this month",
	Repo: "The repository's budget of this month", Key: "The key's budget of this month",
	Plan: "The plan's budget", Task: "The task's budget", Run: "The run's budget", Gift: "The gift",
	OwnWork: "The task's budget, of which a quarter is kept for reviews and repairs,",
}

// exhausted is the refusal of a call for which a limit leaves too little.
func exhausted(scope string) *fault.Error {
	return fault.Newf(fault.PaymentRequired, SlugExhausted, "%s has no room for another call.", limitNames[scope])
}

// meters are the meters that a session's calls count for, with their limits, in the
// order in which transactions lock them.
func (s *Service) meters(tx *db.Tx, sub subject) ([]Meter, error) {
	now, user, plan := month(tx.Now), sub.Person, sub.PlanID
	var defaults Defaults
	var err error
	if sub.RepoID != nil {
		if defaults, err = s.Work.Limits(tx, *sub.RepoID); err != nil {
			return nil, err
		}
	}
	set, err := selectLimits.All(tx, limitsArgs{AccountID: sub.AccountID, UserID: user, RepoID: text(sub.RepoID), PlanID: plan})
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
	switch sub.Kind {
	case Gift:
		return giftMeters(sub, now, limit(Account)), nil
	case Key:
		return keyMeters(sub, now), nil
	}
	meters := []Meter{{Account, sub.AccountID, now, lower(sub.CapMicros, limit(Account))}}
	if user != "" {
		meters = append(meters, Meter{Member, user, now, limit(Member)})
	}
	if sub.RepoID != nil {
		meters = append(meters, Meter{Repo, *sub.RepoID, now, limit(Repo)})
	}
	if plan != "" {
		meters = append(meters, Meter{Plan, plan, "", limit(Plan)})
	}
	// A task that repairs a pull request counts for the task that made it, and may
	// have a limit of its own besides.
	repairs := sub.TaskID != nil && sub.Served != nil && *sub.Served != *sub.TaskID
	orDefault := func(micros *int64) *int64 {
		if micros == nil {
			return defaults.Task
		}
		return micros
	}
	switch {
	case repairs:
		meters = append(meters,
			Meter{Task, *sub.Served, "", orDefault(sub.ServedMicros)},
			Meter{Task, *sub.TaskID, "", sub.TaskMicros})
	case sub.TaskID != nil:
		whole := orDefault(sub.TaskMicros)
		meters = append(meters, Meter{Task, *sub.TaskID, "", whole})
		if whole != nil && slices.Contains([]string{"work", "setup", "devops"}, sub.Kind) { // it may come to a pull request
			own := *whole - *whole/keptShare
			meters = append(meters, Meter{OwnWork, *sub.TaskID, "", &own})
		}
	}
	if sub.RunID != nil {
		meters = append(meters, Meter{Run, *sub.RunID, "", defaults.Run})
	}
	return meters, nil
}

// Defaults are the limits in a repository's policy file, in micro-dollars; nil: none.
type Defaults struct {
	Task *int64 // of a task without a budget of its own
	Run  *int64
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// lower is the lower of two limits; nil is no limit.
func lower(a, b *int64) *int64 {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}
