package run

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"yardmaster/internal/clock"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/protocol"
)

// TestLeasesEndAfterTheClockIsSetBack holds that leases that a fast clock
// granted are shortened when the clock is set right.
func TestLeasesEndAfterTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		keeper := clock.Keeper{DB: f.DB, Waits: []func(*db.Tx) error{f.ClockSetBack}, Logger: slog.New(slog.DiscardHandler)}
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, started()...)
		f.pass(-4 * time.Hour)
		if err := keeper.ShortenWaits(ctx); err != nil {
			t.Fatal(err)
		}
		f.pass(protocol.RedispatchAfter(f.Lease) - time.Second)
		f.scan()
		f.wantStatus(taskID, task.Running)
		f.pass(2 * time.Second)
		f.scan()
		f.wantStatus(taskID, task.Pending)
	})
}

// TestRunsOfTheFutureAreMissed holds that a run that was claimed at a time that
// is now in the future is ended too when its box does not know it.
func TestRunsOfTheFutureAreMissed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindWork)
		f.claim(f.boxes[0])
		f.pass(-4 * time.Hour)
		if _, err := f.Verdicts(context.Background(), f.boxes[0], nil); err != nil {
			t.Fatal(err)
		}
		f.wantStatus(taskID, task.Pending)
	})
}
