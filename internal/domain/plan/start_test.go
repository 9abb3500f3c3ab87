package plan

import (
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

// TestFanOut holds that several repositories are surveyed at once and their
// scouts' claims are merged.
func TestFanOut(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.live()
		a := f.call("POST", "/v1/plans",
			object{"repos": []string{"acme/web", "acme/api"}, "ask": "Who greets?", "return_context": true}, 202)
		scouts := texts(a["task_ids"])
		for taskID, want := range map[string]bool{scouts[0]: true, scouts[1]: true, f.newTask(): false} {
			err := f.DB.Read(f.t.Context(), func(tx *db.Tx) error {
				got, err := OfFanout(tx, taskID)
				if got != want {
					f.t.Errorf("task %s is of a fan-out: %v", taskID, got)
				}
				return err
			})
			if err != nil {
				f.t.Fatal(err)
			}
		}
		f.reports[scouts[0]] = "Two do.\n\n- Greeting is done by hand (`src/hello.go:3`, src/hello.go:5-9).\n- See http://x.org:80/y\n- README:1 says who."
		f.reports[scouts[1]] = "One does.\n\n* greeting is done by hand: api.go:7"
		f.merge(scouts[0])
		path := "/v1/plans/fanouts/" + a["fanout_id"].(string)
		if c := f.call("GET", path, nil, 200); c["status"] != "running" ||
			!slices.Equal(texts(c["still_surveying"]), []string{"acme/api"}) ||
			len(c["claims"].([]any)) != 2 {
			f.t.Errorf("%v", c)
		}
		f.merge(scouts[1])
		c := f.call("GET", path, nil, 200)
		claims := c["claims"].([]any)
		first := claims[0].(object)
		if c["status"] != "done" || len(claims) != 2 || first["text"] != "Greeting is done by hand." ||
			!slices.Equal(texts(first["repos"]), []string{"acme/web", "acme/api"}) ||
			!slices.Equal(texts(first["citations"]),
				[]string{"acme/web:src/hello.go:3", "acme/web:src/hello.go:5-9", "acme/api:api.go:7"}) {
			f.t.Errorf("%v", c)
		}
		body := object{"repos": []string{"acme/web", "acme/api"}, "ask": "Greet."}
		if a := f.call("POST", "/v1/plans", body, 202); a["raw_task_id"] != "the-ask" || a["task_id"] != nil || f.asked != 1 {
			f.t.Errorf("%v", a)
		}
		body["require_approval"] = false
		if p := f.call("POST", "/v1/plans", body, 400); p["errors"].(object)["require_approval"] == nil {
			f.t.Errorf("%v", p)
		}
		f.seats = 0
		f.refused("POST", "/v1/plans", object{"repo": "acme/web", "ask": "Greet."}, 403, "no-capacity")
	})
}

// TestNoLiveBox holds that plan.start is refused in each of its forms where no
// box can hold a live session.
func TestNoLiveBox(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		both := []string{"acme/web", "acme/api"}
		for _, body := range []object{{"repo": "acme/web"}, {"repos": both}, {"repos": both, "return_context": true}} {
			body["ask"] = "Greet."
			if p := f.refused("POST", "/v1/plans", body, 409, "no-live-box"); p["needed_mode"] != "live_session" {
				f.t.Errorf("%v", p)
			}
		}
		f.live()
		if a := f.call("POST", "/v1/plans", object{"repos": both, "ask": "Greet."}, 202); a["raw_task_id"] != "the-ask" || f.asked != 1 {
			f.t.Errorf("%v, %d asks", a, f.asked)
		}
	})
}

// TestScoutPlanWaits holds that the slices of a scout for which a person has to be asked
// are a held plan, whose note says why, although nobody has required an approval.
func TestScoutPlanWaits(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.live()
		for _, why := range []string{"", "The run asks for work in acme/api."} {
			a := f.call("POST", "/v1/plans", object{"repo": "acme/web", "ask": "Do it."}, 202)
			f.waits = why
			f.reports[a["task_id"].(string)] = "```plan overview.md\n# All\n```\n```plan 01-a.md\n---\nrepo: acme/api\n---\n# First\n```\n"
			f.merge(a["task_id"].(string))
			p := f.plan(a["plan_id"].(string))
			if held := p.Status == Held; held != (why != "") || held != (p.Note != nil) || held && !strings.Contains(*p.Note, why) {
				t.Errorf("%q: the plan is %s, %v", why, p.Status, p.Note)
			}
			if n := len(p.Groups[0].Tasks); (n == 0) != (why != "") {
				t.Errorf("%q: %d tasks", why, n)
			}
		}
	})
}

// TestApproverLendsNoToken holds that the tasks of a plan use the token that its requester
// has bound only if the requester has let them begin.
func TestApproverLendsNoToken(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		for _, c := range []struct {
			asked, approves string
			unbound         bool
		}{{"ann", "ann", false}, {"ann", "olga", true}, {"", "olga", false}, {"ann", "", false}} {
			var planID string
			f.write(func(tx *db.Tx) error {
				r, err := repoByID(tx, "repo-web")
				if err != nil {
					return err
				}
				planID, err = f.Author(tx, Draft{Repo: r, Source: SourceTriage, Hold: true, RequestedBy: &c.asked, Overview: "# All",
					Units: []Unit{{Slug: "a", Repo: r, Title: "a", Problem: "Do it."}}})
				return err
			})
			actor := policy.Actor{Credential: policy.PAT, UserID: c.approves, AccountID: "acme"}
			as := policy.With(db.WithAccount(t.Context(), "acme"), actor)
			out, err := f.approve(as, idIn{PlanID: planID})
			if err != nil {
				t.Fatal(err)
			}
			made := f.task(out.TaskIDs[0])
			if made.Unbound != c.unbound {
				t.Errorf("%+v: the task is unbound: %v", c, made.Unbound)
			}
		}
	})
}
