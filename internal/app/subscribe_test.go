package app

import (
	"reflect"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

// subscribersOf lists the signals that have not exactly one subscriber, with the
// number that they have. A signal with none has the reason beside it.
var subscribersOf = map[string]int{
	"repo.policy_changed": 3,  // tasks and budgets are judged by the policy, and heads are checked
	"connection.granted":  3,  // intents and tasks, merges that wait for a permission, and the escalations that name it
	"user.rights_changed": 11, // credentials, what waits of people, and what who has left set out: tokens, keys, codes, mails, consents
	"task.moved":          10, // pull requests, those above, checks, reviews, rounds, issues, plans, their repairs, blockers, lanes
	"pull.seen_to":        2,  // escalations and reviews
	"repo.reachable":      3,  // sweeps, the first walk of the issues, and what waits for a permission
	"ci.ended":            2,  // pull requests, and merge queues
	"ci.host_checked":     2,  // pull requests, and merge queues
	"account.placed":      2,  // its digests, and its built-in boards
}

// TestSignalsAreHeard holds that what a domain tells others inside a transaction
// reaches all of them. Send does not fail without a subscriber, so a subscription
// that is lost would show only in what no longer happens.
func TestSignalsAreHeard(t *testing.T) {
	t.Parallel()
	y := boot(t, db.SQLite)
	heard := event.SignalSubscribers(y.db)
	for name, got := range heard {
		want, listed := subscribersOf[name]
		if !listed {
			want = 1
		}
		if got != want {
			t.Errorf("the signal %s has %d subscribers, want %d: see subscribe.go", name, got, want)
		}
	}
	for name := range subscribersOf {
		if _, ok := heard[name]; !ok {
			t.Errorf("%s is listed, and no signal", name)
		}
	}

	kinds := event.KindSubscribers(y.db)
	hooks := 0
	for _, k := range event.Kinds() {
		if !hasMemberForSubscribers(k.Data()) {
			continue
		}
		if hooks++; kinds[k.Name()] == 0 {
			t.Errorf("the data of %s have members for subscribers, and there is none: see subscribe.go", k.Name())
		}
	}
	if hooks == 0 {
		t.Error("no kind has data for subscribers")
	}
}

// hasMemberForSubscribers tells whether the data of an event have a member that no
// audit row shows.
func hasMemberForSubscribers(data reflect.Type) bool {
	for _, f := range reflect.VisibleFields(data) {
		if f.Tag.Get("json") == "-" {
			return true
		}
	}
	return false
}
