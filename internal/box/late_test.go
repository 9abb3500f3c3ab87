package box

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// What does not end when it is told to, say because a disk hangs, keeps no box.
func TestBoxEndsWithoutWhatDoesNot(t *testing.T) {
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
