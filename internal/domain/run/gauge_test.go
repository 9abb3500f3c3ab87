package run

import (
	"maps"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// TestStates holds that runs that have not ended are counted by their state.
func TestStates(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		count := func(want map[string]int64) {
			t.Helper()
			var got map[string]int64
			if err := f.DB.Read(t.Context(), func(tx *db.Tx) (err error) {
				got, err = States(tx)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		}
		count(map[string]int64{Leased: 0, Live: 0, Parked: 0})
		f.create(task.KindWork)
		f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		count(map[string]int64{Leased: 1, Live: 1, Parked: 0})
		f.mustSay(f.boxes[0], st, int64(1+len(started())), ev(protocol.EventParked, protocol.Parked{WindowMS: 1000}))
		count(map[string]int64{Leased: 1, Live: 0, Parked: 1})
	})
}
