package ask

import (
	"context"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

// TestOnePlan holds that where one plan over several repositories was asked
// for, a verdict is a plan with a slice for each of them, or an escalation.
func TestOnePlan(t *testing.T) {
	t.Parallel()
	f := facts{repos: map[string]Repo{"acme/web": {ID: "web", Enabled: true}, "acme/api": {ID: "api", Enabled: true}},
		within: func(string) bool { return true },
		scopes: policy.Scopes(policy.WriteTasks), priority: 80,
		span: (&row{Source: FromPlan, Reach: db.JSON[[]string]{V: []string{"web", "api"}}}).span()}
	web, api := piece{Repo: "acme/web", Title: "t", Problem: "p"}, piece{Repo: "acme/api", Title: "t", Problem: "p"}
	for name, x := range map[string]struct {
		v  verdict
		ok bool
	}{
		"tasks":             {verdict{Kind: doMint, Reason: "r", Tasks: []piece{web, api}}, false},
		"nothing":           {verdict{Kind: doDrop, Reason: "r"}, false},
		"one is left out":   {verdict{Kind: doPlan, Reason: "r", Plan: &outline{"T", []piece{web, web}}}, false},
		"one for each":      {verdict{Kind: doPlan, Reason: "r", Plan: &outline{"T", []piece{web, api, web}}}, true},
		"a person is asked": {verdict{Kind: doEscalate, Reason: "r", Category: "unclear"}, true},
	} {
		if wrong := check(&x.v, f); (len(wrong) == 0) != x.ok {
			t.Errorf("%s: %v", name, wrong)
		}
	}
	for _, r := range []row{{Source: FromAPI, Reach: db.JSON[[]string]{V: []string{"web", "api"}}},
		{Source: FromPlan, Reach: db.JSON[[]string]{V: []string{"web"}}}} {
		if f.span = r.span(); len(check(&verdict{Kind: doDrop, Reason: "r"}, f)) > 0 {
			t.Errorf("%+v must be a plan", r)
		}
	}
}

// TestRoomIsNoticed holds that an ask behind a full queue is taken up when a
// task leaves the queue, and not only when its wait is over.
func TestRoomIsNoticed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		first := y.existing("acme-web", "In the queue")
		y.queueCap(1)
		askID := y.file(nil)
		y.judge.say = always(says(object{"kind": "drop", "reason": "Noise."}))
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			var both sync.WaitGroup
			both.Go(func() { y.Loop(ctx) })
			both.Go(func() { y.Due.Loop(ctx) })
			both.Wait()
		}()
		defer func() { stop(); <-ended }()
		until := func(what string, is func(Ask) bool) {
			t.Helper()
			var a Ask
			if !patience.Come(y.t, func() bool {
				y.write(func(tx *db.Tx) error {
					r, err := find(tx, askID, false)
					if err != nil {
						return err
					}
					shown, err := y.show(tx, []row{r})
					a = shown[0]
					return err
				})
				return is(a)
			}) {
				t.Fatalf("it never came to pass that %s: %+v", what, a)
			}
		}
		until("it waits for room", func(a Ask) bool {
			return a.State == Pending && a.Hold != nil && a.Hold.Reason == FullQueue && y.waits("acme")
		})
		y.write(func(tx *db.Tx) error {
			row, _, err := task.Lock(tx, "acme", first)
			if err != nil {
				return err
			}
			return y.tasks.Cancel(tx, &row)
		})
		until("it is judged", func(a Ask) bool { return a.State == Dropped && a.Hold == nil })
	})
}

// waits tells whether asks of an account wait for room in its queue.
func (y *yard) waits(account string) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	return len(y.blocked[account]) > 0
}
