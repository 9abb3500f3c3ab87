package task_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

func TestReassign(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.create(nil)
		if got := f.call("acme", "POST", "/v1/tasks/"+id+"/reassign", nil, 200); got["reassigned"] != false {
			f.t.Errorf("pending: %v", got)
		}
		f.claim()
		if got := f.call("acme", "POST", "/v1/tasks/"+id+"/reassign", nil, 200); got["reassigned"] != true || got["status"] != "pending" {
			f.t.Errorf("claimed: %v", got)
		}
		if len(f.stops) != 1 || f.stops[0] != "run "+task.StopReassigned {
			f.t.Errorf("stops %v", f.stops)
		}
		f.call("rival", "POST", "/v1/tasks/"+id+"/reassign", nil, 404)
		f.call("acme", "POST", "/v1/tasks/"+id+"/cancel", nil, 200)
		f.refused("POST", "/v1/tasks/"+id+"/reassign", nil, 409, "task_terminal")
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.create(nil)
		waiting := f.create(object{"depends_on": []string{id}})
		f.claim()
		if got := f.call("acme", "POST", "/v1/tasks/"+id+"/cancel", nil, 200); got["kind"] != "cancelled" || len(f.stops) != 1 {
			f.t.Errorf("cancel: %v, stops %v", got, f.stops)
		}
		if got := f.call("acme", "POST", "/v1/tasks/"+id+"/cancel", nil, 200); got["kind"] != "already_terminal" {
			f.t.Errorf("again: %v", got)
		}
		if got := f.get(waiting); got["status"] != "failed" || got["failure_kind"] != task.DependencyFailed {
			f.t.Errorf("dependent: %v", got)
		}
		f.refused("POST", "/v1/tasks/"+waiting+"/redispatch", nil, 409, "dependency_failed")
		f.refused("POST", "/v1/tasks/"+id+"/redispatch", nil, 409, "operator_cancelled")
		f.write("acme", func(tx *db.Tx) error {
			n, err := countAudit.One(tx, id, "task.cancelled")
			if n != 1 {
				f.t.Errorf("%d audit rows of one cancel", n)
			}
			return err
		})

		f.open = true
		pr := "pr"
		var review task.Row
		f.write("acme", func(tx *db.Tx) (err error) {
			review, err = f.Create(tx, task.Repo{ID: "acme-web"},
				task.Spec{Kind: task.KindReview, Sink: task.SinkQueued, Title: "Review", Problem: "p", Template: "default", PRID: &pr})
			return err
		})
		f.refused("POST", "/v1/tasks/"+review.ID+"/cancel", nil, 409, "not_cancellable_review")
		f.open = false
		f.call("acme", "POST", "/v1/tasks/"+review.ID+"/cancel", nil, 200)
	})
}

func TestRedispatch(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.create(nil)
		b := f.create(object{"depends_on": []string{id}})
		c := f.create(object{"depends_on": []string{b, id}})
		f.refused("POST", "/v1/tasks/"+id+"/redispatch", nil, 409, "already_pending")
		f.claim()
		f.refused("POST", "/v1/tasks/"+id+"/redispatch", nil, 409, "in_flight")
		f.change(id, func(tx *db.Tx, t *task.Row) error {
			if err := f.SetWIP(tx, t, "abc", []string{"a.go"}); err != nil {
				return err
			}
			return f.AttemptFailed(tx, t, task.PolicyRefused, "no")
		})
		f.status(b, "failed")
		f.status(c, "failed")
		out := f.call("acme", "POST", "/v1/tasks/"+id+"/redispatch", object{"guidance": "use password=hunter2222 or not"}, 200)
		wip := out["saved_wip"].(object)
		if out["prior_attempt"] != 1.0 || wip["found"] != true || wip["sha"] != "abc" || len(out["released_dependents"].([]any)) != 2 ||
			out["guidance_chars"] == nil {
			f.t.Errorf("answer %v", out)
		}
		got := f.get(id)
		if got["attempt"] != 0.0 || got["failure_kind"] != task.PolicyRefused || got["status"] != "pending" ||
			strings.Contains(got["guidance"].(string), "hunter") {
			f.t.Errorf("task %v", got)
		}
		f.status(b, "pending")
		f.refused("POST", "/v1/tasks/"+id+"/redispatch", object{"guidance": strings.Repeat("x", 2001)}, 400, "invalid")
		for _, next := range []string{id, b, c} {
			if got := f.claim(); got != next {
				f.t.Fatalf("claimed %q, want %q: dependents go in order", got, next)
			}
			f.change(next, f.MarkRunning)
			f.change(next, f.Complete)
		}
		f.refused("POST", "/v1/tasks/"+id+"/redispatch", nil, 409, "already_shipped")
	})
}

// Guidance of somebody else than the requester takes the requester's token from git of the
// task, for good, and the record says so. The requester's own does not.
func TestGuidanceOfOthersUnbinds(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		for _, asker := range []string{"ann", "bob"} {
			var id string
			err := f.DB.Write(db.WithAccount(context.Background(), "acme"), func(tx *db.Tx) error {
				r, _, err := f.Repos.ByName(tx, "acme", "web")
				if err != nil {
					return err
				}
				row, err := f.Create(tx, r, task.Spec{Kind: task.KindWork, Sink: task.SinkQueued, Title: "t", Problem: "p",
					Confidence: 1, RequestedBy: &asker})
				id = row.ID
				return err
			})
			if err != nil {
				f.t.Fatal(err)
			}
			f.claim()
			fail := func(tx *db.Tx, t *task.Row) error { return f.AttemptFailed(tx, t, task.PolicyRefused, "no") }
			f.change(id, fail)
			f.call("acme", "POST", "/v1/tasks/"+id+"/redispatch", nil, 200) // no guidance, no edit
			f.claim()
			f.change(id, fail)
			unbound := func() (out bool) {
				f.change(id, func(_ *db.Tx, t *task.Row) error { out = t.Unbound; return nil })
				return out
			}
			if unbound() {
				f.t.Errorf("the task of %s is unbound before", asker)
			}
			f.call("acme", "POST", "/v1/tasks/"+id+"/redispatch", object{"guidance": "Push it elsewhere."}, 200)
			if unbound() != (asker != "ann") {
				f.t.Errorf("guided by ann, the task of %s: unbound %v", asker, unbound())
			}
			f.claim()
		}
		var kinds []string
		err := f.DB.Read(db.WithAccount(context.Background(), "acme"), func(tx *db.Tx) (err error) {
			kinds, err = unboundRecords.All(tx)
			return err
		})
		if err != nil || len(kinds) != 1 {
			f.t.Errorf("%d records say so: %v", len(kinds), err)
		}
	})
}

var unboundRecords = db.Q[string](`SELECT kind FROM audit WHERE kind = 'task.redispatched' AND data LIKE '%"unbound":true%'`)

func TestMovesOutsideTheTableFail(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.create(nil)
		err := f.DB.Write(db.WithAccount(context.Background(), "acme"), func(tx *db.Tx) error {
			row, _, err := task.Lock(tx, "acme", id)
			if err != nil {
				return err
			}
			return f.Merged(tx, &row)
		})
		if err == nil {
			f.t.Fatal("a pending task was merged")
		}
		f.status(id, "pending")
	})
}

// A fault of its box is no try of a task, however often it happens.
func TestUnfitBoxesAreNoTries(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.create(nil)
		for _, kind := range []string{task.BoxLost, task.AgentError, task.BoxUnfit, task.BoxUnfit, task.BoxUnfit, task.BoxUnfit,
			task.BoxUnfit, task.BoxUnfit, task.BoxLost, task.BoxUnfit} {
			f.pass(time.Hour)
			if f.claim() != id {
				f.t.Fatalf("not claimable before it fails with %s: %v", kind, f.get(id))
			}
			f.change(id, func(tx *db.Tx, t *task.Row) error {
				charged, uncharged := t.Charged, t.Uncharged
				if err := f.AttemptFailed(tx, t, kind, "it broke"); err != nil {
					return err
				}
				if kind == task.BoxUnfit && (t.Charged != charged || t.Uncharged != uncharged || t.NotBefore.After(tx.Now) ||
					*t.FailureKind != task.BoxUnfit) {
					f.t.Errorf("after an unfit box: %+v", t)
				}
				return nil
			})
			f.status(id, "pending")
		}
		f.claim()
		f.change(id, func(_ *db.Tx, t *task.Row) error {
			if t.Charged != 1 || t.Uncharged != 1 || t.Attempt != 11 {
				f.t.Errorf("counted are %d and %d tries of %d", t.Charged, t.Uncharged, t.Attempt)
			}
			return nil
		})
	})
}

// A code host that does not answer costs a task no try, but not for ever.
func TestSilentHostIsNoTry(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.create(nil)
		for n := 1; n <= 5; n++ {
			f.pass(time.Hour)
			if f.claim() != id {
				f.t.Fatalf("not claimable the %d. time: %v", n, f.get(id))
			}
			f.change(id, func(tx *db.Tx, t *task.Row) error {
				if err := f.HostSilent(tx, t, task.PushRejected, "503"); err != nil {
					return err
				}
				if t.Charged != 0 || *t.FailureKind != task.PushRejected || n < 5 && !t.NotBefore.After(tx.Now) {
					f.t.Errorf("the %d. time: %+v", n, t)
				}
				return nil
			})
			want := "pending"
			if n == 5 {
				want = "failed"
			}
			f.status(id, want)
		}
	})
}
