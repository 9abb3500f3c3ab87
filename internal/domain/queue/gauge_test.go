package queue

import (
	"maps"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

// TestHoldCounts holds that the tasks of all accounts are counted by what holds
// them, as the accounts themselves are shown, and held ones by what parked them.
func TestHoldCounts(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		first, parked := f.create(nil), f.create(nil)
		f.create(object{"depends_on": []string{first}})
		f.create(object{"template": "other"})
		f.change(parked, func(tx *db.Tx, t *task.Row) error { return f.Hold(tx, t, task.Blocked, "why") })
		var got map[string]int64
		if err := f.DB.Read(f.t.Context(), func(tx *db.Tx) (err error) {
			got, err = f.HoldCounts(tx)
			return err
		}); err != nil {
			f.t.Fatal(err)
		}
		if want := map[string]int64{Claimable: 1, task.HoldDependencies: 1, task.HoldAgent: 1, task.Blocked: 1}; !maps.Equal(got, want) {
			f.t.Errorf("%v, want %v", got, want)
		}
	})
}
