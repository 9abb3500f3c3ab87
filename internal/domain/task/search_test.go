package task_test

import (
	"fmt"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

// searched is how many tasks a page of a search looks at.
const searched = 20_000

var fillQueue = db.S(`INSERT INTO tasks (id, account_id, repo_id, kind, sink, title, problem, status, max_attempts, priority, waiting_deps,
	queued_at, branch, files, labels, template, command, confidence, created_by, created_at, updated_at)
	WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
	SELECT 'x' || i, 'acme', 'acme-web', 'work', 'queued', 'Repair no. ' || i || ' of all', 'p', 'completed', 3, 50, 0, i, 'svc/x', '[]',
	'{}', 'default', '[]', 1, 'user:ann', i, 0 FROM n`)

// TestSearchIsBounded holds that a search through a long queue takes several
// pages rather than long, and that a bare cursor goes on with it.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.write("acme", func(tx *db.Tx) error { _, err := fillQueue.Exec(tx, 2*searched+10); return err })
		var found []string
		pages := 0
		for path := "/v1/tasks?q=no.+7+of&filter=kind:work"; path != ""; pages++ {
			page := f.call("acme", "GET", path, nil, 200)
			for _, row := range page["data"].([]any) {
				found = append(found, row.(object)["id"].(string))
			}
			path = ""
			if next, ok := page["next_cursor"].(string); ok {
				path = "/v1/tasks?cursor=" + next
				f.refused("GET", path+"&q=other", nil, 400, "invalid")
				f.refused("GET", path+"&filter=kind:ci", nil, 400, "invalid")
			}
		}
		if pages != 3 || len(found) != 1 || found[0] != "x7" {
			f.t.Errorf("%v on %d pages", found, pages)
		}
		page := f.call("acme", "GET", "/v1/tasks?q=no.+7+of&filter=status:failed,completed", nil, 200)
		if len(page["data"].([]any)) != 0 || page["next_cursor"] == nil {
			f.t.Errorf("a search in several states: %v", page)
		}
		page = f.call("acme", "GET", "/v1/tasks?q=REPAIR&per_page=3", nil, 200)
		if rows := page["data"].([]any); len(rows) != 3 || rows[2].(object)["id"] != fmt.Sprint("x", 2*searched+8) {
			f.t.Errorf("%v", page)
		}
	})
}

// TestSeveralStates holds that pages of tasks in several states have each task once, in
// order.
func TestSeveralStates(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.write("acme", func(tx *db.Tx) error {
			if _, err := fillQueue.Exec(tx, 30); err != nil {
				return err
			}
			for i := 1; i <= 30; i += 3 {
				if _, err := seed.CancelTask.Exec(tx, fmt.Sprint("x", i)); err != nil {
					return err
				}
			}
			return nil
		})
		last, n := 31, 0
		for path := "/v1/tasks?per_page=7&filter=status:cancelled,completed,cancelled"; path != ""; {
			page := f.call("acme", "GET", path, nil, 200)
			for _, row := range page["data"].([]any) {
				if last--; row.(object)["id"] != fmt.Sprint("x", last) {
					f.t.Errorf("%v, want x%d", row.(object)["id"], last)
				}
				n++
			}
			path = ""
			if next, ok := page["next_cursor"].(string); ok {
				path = "/v1/tasks?cursor=" + next
			}
		}
		if n != 30 {
			f.t.Errorf("%d tasks", n)
		}
	})
}
