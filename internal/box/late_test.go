package box

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// TestBoxEndsWithoutWhatDoesNot holds that a task that does not end, for example
// because a disk hangs, does not keep the box from ending.
func TestBoxEndsWithoutWhatDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &box{log: slog.New(slog.DiscardHandler)}
		stuck := make(chan struct{})
		b.tasks.Go(func() { <-stuck })
		began := time.Now()
		b.awaitTasks(time.After(endWait))
		if waited := time.Since(began); waited != endWait {
			t.Errorf("waited %s, want %s", waited, endWait)
		}
		close(stuck)
		b.awaitTasks(nil)
	})
}
