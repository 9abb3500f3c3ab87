package task

import (
	"reflect"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

var setTemplate = db.S(`UPDATE tasks SET template = $2 WHERE id = $1`)

// A page reads its repositories at once and its templates at once, however many
// tasks it has, and says what it says of each task alone.
func TestPageReadsPerPage(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.repo("big")
		f.repo("old")
		for i := range 12 {
			id := f.create(object{"repo": "acme/" + []string{"web", "big", "old"}[i%3], "template": []string{"default", "other"}[i%2]})
			if i > 9 { // more than one waits for a template that is gone
				f.write("acme", func(tx *db.Tx) error {
					was, _, err := Get(tx, "acme", id)
					if err == nil {
						_, err = setTemplate.Exec(tx, id, "gone")
					}
					is := was
					is.Template = "gone"
					shifts.Add(tx, shift{lane: was.lane(), ready: -1})
					shifts.Add(tx, is.shift(0, true))
					return err
				})
			}
		}
		f.write("", func(tx *db.Tx) error { _, err := seed.SetEnabled.Exec(tx, "old", false); return err })
		alone := map[any]any{}
		for _, row := range f.call("acme", "GET", "/v1/tasks", nil, 200)["data"].([]any) {
			id := row.(object)["id"].(string)
			one := f.get(id)
			delete(one, "run")
			delete(one, "plan")
			alone[id] = one
		}

		f.others.several = true
		rows := f.call("acme", "GET", "/v1/tasks", nil, 200)["data"].([]any)
		if len(rows) != 12 {
			t.Errorf("%d tasks, want 12", len(rows))
		}
		reasons := map[any]int{}
		for _, row := range rows {
			if id := row.(object)["id"]; !reflect.DeepEqual(row, alone[id]) {
				t.Errorf("in the page %v\nalone %v", row, alone[id])
			}
			for _, h := range row.(object)["holds"].([]any) {
				reasons[h.(object)["reason"]]++
			}
		}
		if want := map[any]int{HoldRepo: 4, HoldTemplate: 2, HoldAgent: 5}; !reflect.DeepEqual(reasons, want) {
			t.Errorf("holds %v, want %v", reasons, want)
		}
		if want := []string{"3 repositories", "3 templates of acme"}; !reflect.DeepEqual(f.others.asked, want) {
			t.Errorf("asked for %v, want %v", f.others.asked, want)
		}
	})
}
