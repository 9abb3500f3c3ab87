package plan

import (
	"slices"
	"testing"

	"yardmaster/internal/db"
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
