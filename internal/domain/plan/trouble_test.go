package plan

import (
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// What has failed of a plan is told by the units in which it began, and those behind them are
// counted and name them by title; it is over once they are back.
func TestTrouble(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		planID := f.draw(false, nil, []int{0}, []int{1}, nil)
		groups := f.plan(planID).Groups
		taskOf := func(i int) string { return groups[i].Tasks[0].ID }
		trouble := func() (out Trouble, ok bool) {
			f.write(func(tx *db.Tx) (err error) {
				out, ok, err = TroubleOf(tx, planID)
				return err
			})
			return out, ok
		}
		if got, ok := trouble(); ok {
			f.t.Errorf("of a plan that goes on: %+v", got)
		}
		f.fail(taskOf(0))
		got, ok := trouble()
		want := []FailedUnit{{TaskID: taskOf(0), Title: "Part 0", Why: "By a test."}}
		if !ok || !slices.Equal(got.Failed, want) || got.Behind != 2 || got.Status != Running {
			f.t.Errorf("%v, %+v", ok, got)
		}
		for _, i := range []int{1, 2} {
			if failed := f.task(taskOf(i)); *failed.Failure != `The task "Part 0", which it depends on, has failed.` {
				f.t.Errorf("part %d: %s", i, *failed.Failure)
			}
		}
		f.fail(taskOf(3))
		if got, ok := trouble(); !ok || len(got.Failed) != 2 || got.Status != Failed {
			f.t.Errorf("%v, %+v", ok, got)
		}
		for _, i := range []int{0, 3} {
			f.change(taskOf(i), func(tx *db.Tx, t *task.Row) error { // as a redispatch does
				t.FailureKind = ptr(task.DependencyFailed)
				_, err := f.Tasks.Relink(tx, t, nil, nil)
				return err
			})
		}
		if got, ok := trouble(); ok {
			f.t.Errorf("revived: %+v", got)
		}
		f.call("POST", "/v1/plans/"+planID+"/cancel", nil, 200)
		if got, ok := trouble(); ok {
			f.t.Errorf("cancelled: %+v", got)
		}
	})
}

// A unit that was cancelled lets those behind it fail, which names it, and is told by the first
// of them.
func TestTroubleOfCancelled(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		planID := f.draw(false, nil, []int{0}, []int{1})
		groups := f.plan(planID).Groups
		f.change(groups[0].Tasks[0].ID, f.Tasks.Cancel)
		f.write(func(tx *db.Tx) error {
			got, ok, err := TroubleOf(tx, planID)
			if !ok || len(got.Failed) != 2 || got.Failed[0].TaskID != groups[1].Tasks[0].ID ||
				got.Failed[0].Why != `The task "Part 0", which it depends on, was cancelled.` {
				f.t.Errorf("%v, %+v", ok, got)
			}
			return err
		})
	})
}

// That a plan is done is told once, with all its tasks.
func TestEnded(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		var told []Finished
		Ended.On(f.DB, func(_ *db.Tx, p Finished) error {
			told = append(told, p)
			return nil
		})
		planID := f.draw(false, nil, []int{0})
		groups := f.plan(planID).Groups
		var tasks []string
		for i, g := range groups {
			if len(told) != 0 {
				f.t.Errorf("told before its end: %+v", told)
			}
			tasks = append(tasks, groups[i].Tasks[0].ID)
			f.merge(g.Tasks[0].ID)
		}
		f.write(func(tx *db.Tx) error { f.touch(tx, planID); return nil })
		if len(told) != 1 || told[0].PlanID != planID || !slices.Equal(told[0].TaskIDs, tasks) {
			f.t.Errorf("told %+v", told)
		}
	})
}
