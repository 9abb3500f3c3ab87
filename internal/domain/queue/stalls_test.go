package queue

import (
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/seed"
)

func TestStalls(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		first := f.create(nil)
		f.create(object{"depends_on": []string{first}})
		f.create(object{"template": "other"})
		status := f.call("acme", "GET", "/v1/queue/status", nil, 200)
		got := map[string]float64{}
		for _, s := range status["data"].([]any) {
			got[s.(object)["reason"].(string)] = s.(object)["count"].(float64)
		}
		if status["claimable"] != 1.0 || status["queue_depth"] != 3.0 || got[task.HoldDependencies] != 1 || got[task.HoldAgent] != 1 ||
			len(got) != 2 {
			f.t.Errorf("status %v", status)
		}
		f.create(object{"depends_on": []string{first}}) // now two wait for another
		var walked []string
		for path := "/v1/queue/status?per_page=1"; path != ""; {
			page := f.call("acme", "GET", path, nil, 200)
			for _, s := range page["data"].([]any) {
				walked = append(walked, s.(object)["reason"].(string))
			}
			if path = ""; page["next_cursor"] != nil {
				path = "/v1/queue/status?per_page=1&cursor=" + page["next_cursor"].(string)
			}
			if page["queue_depth"] != 4.0 || len(page["data"].([]any)) != 1 {
				f.t.Errorf("page %v", page)
			}
		}
		if !slices.Equal(walked, []string{task.HoldDependencies, task.HoldAgent}) {
			f.t.Errorf("page by page: %q", walked)
		}
		f.call("acme", "GET", "/v1/queue/status?per_page=201", nil, 400)
		f.write("", func(tx *db.Tx) error { _, err := seed.SetPresence.Exec(tx, "box", "offline"); return err })
		if got := reasons(f.get(first)); len(got) != 1 || got[0] != task.HoldNoBox {
			f.t.Errorf("holds %v", got)
		}
		if f.get(first)["stuck"] != false {
			f.t.Error("stuck at once")
		}
		f.pass(2 * time.Hour)
		if f.get(first)["stuck"] != true {
			f.t.Error("two hours without a box are not stuck")
		}
	})
}
