package queue

import (
	"reflect"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/repo"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/seed"
)

// A page reads its repositories at once and its templates at once, however many
// tasks it has, and says what it says of each task alone.
func TestPageReadsPerPage(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.repo("big")
		f.repo("old")
		for i := range 12 {
			template := []string{"default", "other"}[i%2]
			if i > 9 { // more than one waits for a template that is gone
				template = "gone"
			}
			f.create(object{"repo": "acme/" + []string{"web", "big", "old"}[i%3], "template": template})
		}
		f.others.gone = "gone"
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
		if want := map[any]int{task.HoldRepo: 4, task.HoldTemplate: 2, task.HoldAgent: 5}; !reflect.DeepEqual(reasons, want) {
			t.Errorf("holds %v, want %v", reasons, want)
		}
		if want := []string{"3 repositories", "3 templates of acme"}; !reflect.DeepEqual(f.others.asked, want) {
			t.Errorf("asked for %v, want %v", f.others.asked, want)
		}
	})
}

// In a repository that lacks a permission for pushes no task is claimed until it is granted,
// and the tasks say what they wait for. Others go on.
func TestLackingPermission(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.repo("big")
		f.others.lacks = map[string]string{"big": "contents: write"}
		f.write("acme", func(tx *db.Tx) error { _, err := repo.Lack(tx, "big", "contents: write"); return err })
		waits := f.create(object{"repo": "acme/big"})
		goes := f.create(nil)
		if got := f.claimOnce(); got != goes {
			t.Errorf("claimed %q", got)
		}
		holds := f.get(waits)["holds"].([]any)
		if len(holds) == 0 || holds[0].(object)["reason"] != task.HoldRepo ||
			!strings.Contains(holds[0].(object)["clears_when"].(string), "contents: write") {
			t.Errorf("holds %v", holds)
		}
		f.others.lacks = nil
		f.write("acme", func(tx *db.Tx) error { _, err := repo.Lack(tx, "big", ""); return err })
		if got := f.claimOnce(); got != waits {
			t.Errorf("claimed %q after the grant", got)
		}
	})
}

// In a repository without a first commit no task is claimed; in one with a branch svc, none
// that would push a branch beside it. Each says once what is to be done, before anything is
// spent, and goes on when that is done.
func TestShapeOfTheRepository(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shape task.Repo
		says  string
	}{
		"no commit":    {task.Repo{Unborn: true}, "first commit to its default branch main"},
		"a branch svc": {task.Repo{InTheWay: "svc"}, "the branch svc of the repository is deleted or renamed"},
	} {
		t.Run(name, func(t *testing.T) {
			each(t, func(f *fixture) {
				f.repo("big")
				f.others.shapes = map[string]task.Repo{"big": c.shape}
				waits := f.create(object{"repo": "acme/big"})
				goes := f.create(nil)
				if got := f.claimOnce(); got != goes {
					t.Errorf("claimed %q", got)
				}
				holds := f.get(waits)["holds"].([]any)
				if len(holds) == 0 || holds[0].(object)["reason"] != task.HoldRepo ||
					!strings.Contains(holds[0].(object)["clears_when"].(string), c.says) {
					t.Errorf("holds %v", holds)
				}
				f.others.shapes = nil
				if got := f.claimOnce(); got != waits {
					t.Errorf("claimed %q afterwards", got)
				}
			})
		})
	}
}
