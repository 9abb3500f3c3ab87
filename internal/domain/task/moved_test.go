package task_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
)

// Who listens to moves hears all of them, and can undo one.
func TestMoved(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		var heard []string
		task.Moved.On(f.DB, func(_ *db.Tx, m task.Move) error {
			heard = append(heard, string(m.From)+">"+string(m.Task.Status))
			return nil
		})
		up := f.create(nil)
		down := f.create(object{"depends_on": []string{up}})
		f.claim()
		f.change(up, func(tx *db.Tx, t *task.Row) error { return f.MarkRunning(tx, t) })
		f.call("acme", "POST", "/v1/tasks/"+up+"/cancel", nil, 200)
		f.status(down, "failed")
		if got, want := strings.Join(heard, " "),
			">pending >pending pending>claimed claimed>running running>cancelled pending>failed"; got != want {
			f.t.Errorf("heard %s, want %s", got, want)
		}

		id := f.create(nil)
		no := errors.New("no")
		task.Moved.On(f.DB, func(*db.Tx, task.Move) error { return no })
		err := f.DB.Write(f.t.Context(), func(tx *db.Tx) error {
			t, _, err := task.Lock(tx, "acme", id)
			if err != nil {
				return err
			}
			return f.Hold(tx, &t, task.Blocked, "It waits.")
		})
		event.Detach(f.DB)
		if !errors.Is(err, no) {
			f.t.Errorf("a refused move answers %v", err)
		}
		f.status(id, "pending")
	})
}

// A task whose pull request was closed, and is open again, goes on with it, and
// so does what failed because of it. Cancelled work stays so.
func TestReopened(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id := f.create(nil)
		waiting := f.create(object{"depends_on": []string{id}})
		f.claim()
		f.change(id, func(tx *db.Tx, t *task.Row) error { return f.MarkRunning(tx, t) })
		f.change(id, func(tx *db.Tx, t *task.Row) error { return f.ToAwaitingCI(tx, t, "pr") })
		f.change(id, func(tx *db.Tx, t *task.Row) error { return f.Fail(tx, t, task.PRClosed, "The branch was deleted.") })
		f.status(waiting, "failed")
		f.change(id, func(tx *db.Tx, t *task.Row) error { return f.Reopened(tx, t, "pr") })
		if got := f.get(id); got["status"] != "awaiting_ci" || got["finished_at"] != nil || got["failure_kind"] != nil {
			f.t.Errorf("task %v", got)
		}
		f.status(waiting, "pending")
		f.call("acme", "POST", "/v1/tasks/"+id+"/cancel", nil, 200)
		f.status(waiting, "failed")
		if slices.ContainsFunc(task.Statuses(), func(to task.Status) bool { return task.Allowed(task.Cancelled, to) }) {
			f.t.Error("a cancelled task can go on")
		}
	})
}
