package app

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// A first push to a private repository meets the gate of enabling one, and a tier that is
// lowered holds the tasks of those that are enabled, with the way out.
func TestTierWithoutPrivateRepositoriesHoldsTheirTasks(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	operator := y.operator()
	tier := func(to string) {
		y.send("PUT", "/v1/admin/accounts/"+y.acct+"/tier", operator, `{"tier": "`+to+`", "confirm": true}`).want(200)
	}
	var made struct {
		TaskID string `json:"task_id"`
	}
	y.push("acme/web", map[string]string{"README": "hello\n"})
	decode(t, y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "Greet", "problem": "Say hello."}`).want(202), &made)
	holds := func() (out []task.Hold) {
		var now task.Task
		decode(t, y.send("GET", "/v1/tasks/"+made.TaskID, y.owner, "").want(200), &now)
		return slices.DeleteFunc(now.Holds, func(h task.Hold) bool { return h.Reason != task.HoldPlan })
	}
	if h := holds(); len(h) > 0 {
		t.Errorf("a covered repository: %+v", h)
	}
	rungs := func() (next string) {
		var out struct {
			Rungs []struct{ Rung, State string }
		}
		decode(t, y.send("GET", "/v1/next-steps?repo=acme/web", y.owner, "").want(200), &out)
		for _, r := range out.Rungs {
			if r.Rung == "repository" || r.Rung == "model_key" {
				next += r.Rung + " " + r.State + " "
			}
		}
		return next
	}
	y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(201)
	if got := rungs(); got != "repository done model_key done " {
		t.Errorf("of a covered repository: %s", got)
	}
	tier("free")
	if got := rungs(); got != "repository open model_key done " {
		t.Errorf("the plan does not cover it: %s", got)
	}
	if h := holds(); len(h) != 1 || !h[0].Blocking || h[0].Clear == nil || h[0].Clear.Capability != "account.oss_verification_apply" {
		t.Errorf("a repository that is not covered any more: %+v", h)
	}
	for _, asked := range []answer{
		y.send("POST", "/v1/repos/acme/web/ask", y.owner, `{"question": "What is in the README?"}`),
		y.send("GET", "/v1/repos/acme/web/answers", y.owner, ""),
	} {
		if p := asked.problem(402, "payment-required"); !strings.Contains(fmt.Sprint(p["detail"]), "account.oss_verification_apply") {
			t.Errorf("a question about it: %s", asked.body)
		}
	}
	y.push("acme/second", map[string]string{"README": "hello\n"})
	if a := y.send("GET", "/v1/repos/acme/second", y.owner, "").want(200); !bytes.Contains(a.body, []byte(`"enabled":false`)) {
		t.Errorf("a first push makes %s", a.body)
	}
	tier("oss_verified")
	if h := holds(); len(h) > 0 {
		t.Errorf("a repository that is covered again: %+v", h)
	}
	y.send("PATCH", "/v1/repos/acme/second", y.owner, `{"enabled": true}`).want(200)
}

// A hold begins when what it says became so, and not when the task was filed: who looks for what
// has waited for a person goes by it.
func TestHoldsBeginWhenTheyBecameSo(t *testing.T) {
	t.Parallel()
	for _, engine := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(engine.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, engine)
			operator := y.operator()
			var made struct {
				TaskID string `json:"task_id"`
			}
			var key struct{ ID string }
			y.push("acme/web", map[string]string{"README": "hello\n"})
			decode(t, y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(201), &key)
			decode(t, y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/web", "title": "Greet", "problem": "Say hello."}`).want(202), &made)
			began := func(reason string) {
				t.Helper()
				var now task.Task
				decode(t, y.send("GET", "/v1/tasks/"+made.TaskID, y.owner, "").want(200), &now)
				i := slices.IndexFunc(now.Holds, func(h task.Hold) bool { return h.Reason == reason })
				if i < 0 || !now.Holds[i].Since.After(now.CreatedAt) {
					t.Errorf("created at %v, %s: %+v", now.CreatedAt, reason, now.Holds)
				}
			}
			y.send("DELETE", "/v1/billing/keys/"+key.ID, y.owner, "").want(200)
			began(task.HoldKey)
			y.send("PUT", "/v1/admin/accounts/"+y.acct+"/tier", operator, `{"tier": "free", "confirm": true}`).want(200)
			// A repository of the built-in host is private.
			began(task.HoldPlan)
			y.send("PATCH", "/v1/repos/acme/web", y.owner, `{"enabled": false}`).want(200)
			began(task.HoldRepo)
		})
	}
}
