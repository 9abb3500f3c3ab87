package run

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
)

var triggerOf = db.Q[string](`SELECT trigger FROM sessions WHERE run_id = $1`)

// TestTriggerOfScouts holds that the session of a scout of a fan-out says that a
// plan caused it, and that no other session does.
func TestTriggerOfScouts(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		for _, c := range []struct {
			kind   string
			fanout bool
			want   string
		}{
			{task.KindScout, true, "plan"},
			{task.KindScout, false, "task"},
			{task.KindWork, true, "task"},
		} {
			f.others.fanout = c.fanout
			f.create(c.kind)
			st := f.claim(f.boxes[0])
			f.write(func(tx *db.Tx) error {
				got, err := triggerOf.One(tx, st.Run)
				if got != c.want {
					t.Errorf("kind %s, fan-out %v: the session came of %q, want %q", c.kind, c.fanout, got, c.want)
				}
				return err
			})
		}
	})
}
