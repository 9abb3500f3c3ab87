package run

import (
	"context"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/protocol"
)

var (
	kindsLeft = db.Q[string](`SELECT kind FROM run_events WHERE run_id = $1 ORDER BY seq`)
	saidGone  = db.Q[string](`SELECT data FROM audit WHERE account_id = $1 AND kind = 'run.events_reaped' ORDER BY seq`)
)

// TestReap holds that events go once their run has been over for as long as they are kept, that those
// of a report and of runs that go on stay, and that the account's record says what went.
func TestReap(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.KeepEvents = 10 * 24 * time.Hour
		begin := func() (string, *protocol.Start) {
			taskID := f.create(task.KindWork)
			st := f.claim(f.boxes[0])
			f.mustSay(f.boxes[0], st, 1, started()...)
			return taskID, st
		}
		over, first := begin()
		f.mustSay(f.boxes[0], first, 5, ev("artifact.stored", map[string]string{"name": "a"}), ev("agent.update", map[string]int{"n": 1}),
			finished(protocol.Finished{State: protocol.Failed}))
		_, live := begin()
		path := "/v1/tasks/" + over + "/events?run_id=" + first.Run
		pass := func(days int) (left []string, old int64, said []string) {
			t.Helper()
			f.pass(time.Duration(days) * 24 * time.Hour)
			f.write(func(tx *db.Tx) (err error) { old, err = Old(tx, tx.Now.Add(-f.KeepEvents)); return err })
			if err := f.Reap(context.Background()); err != nil {
				t.Fatal(err)
			}
			f.write(func(tx *db.Tx) (err error) {
				if left, err = kindsLeft.All(tx, first.Run); err != nil {
					return err
				}
				said, err = saidGone.All(tx, f.account)
				return err
			})
			return left, old, said
		}
		if left, old, said := pass(9); len(left) != 7 || old != 0 || len(said) != 0 {
			t.Fatalf("too early: %q, %d old, %q", left, old, said)
		}
		if page := f.get(path, 200); page["reaped_at"] != nil || len(page["events"].([]any)) != 7 {
			t.Errorf("too early: %v", page)
		}
		left, old, said := pass(3)
		if len(left) != 2 || left[0] != "artifact.stored" || left[1] != protocol.EventFinished || old != 5 || len(said) != 1 {
			t.Fatalf("%q are left, %d were old, the record says %q", left, old, said)
		}
		want := `{"before":"` +
			f.now().Add(-f.KeepEvents).UTC().Truncate(time.Millisecond).Format(time.RFC3339Nano) + `","events":5,"runs":1}`
		if said[0] != want {
			t.Errorf("the record says %s, want %s", said[0], want)
		}
		if page := f.get(path, 200); page["reaped_at"] == nil || len(page["events"].([]any)) != 2 {
			t.Errorf("afterwards: %v", page)
		}
		if left, old, said = pass(1); len(left) != 2 || old != 0 || len(said) != 1 {
			t.Errorf("again: %q, %d, %q", left, old, said)
		}
		f.write(func(tx *db.Tx) (err error) { left, err = kindsLeft.All(tx, live.Run); return err })
		if len(left) != 4 {
			t.Errorf("of a run that goes on %q are left", left)
		}
		f.write(func(tx *db.Tx) error {
			_, wrong, err := event.Proofread(tx)
			if len(wrong) > 0 {
				t.Errorf("the record: %q", wrong)
			}
			return err
		})
	})
}

func (f *fixture) now() time.Time { return time.UnixMicro(f.clock.Load()) }
