package run

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestGate holds that a box uses up its own slots before it can fill the gate,
// and that a stuck envelope is reported.
func TestGate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Service{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		release := make(chan struct{})
		var greedy atomic.Int64
		for range 10 * maxEnvelopes {
			go func() {
				leave, err := s.gate.enter(ctx, "greedy")
				if err != nil {
					return
				}
				greedy.Add(1)
				<-release
				leave()
			}()
		}
		synctest.Wait()
		if n := greedy.Load(); n != maxOfBox {
			t.Errorf("one box has %d turns, want %d", n, maxOfBox)
		}
		for range maxEnvelopes - maxOfBox {
			leave, err := s.gate.enter(ctx, "modest")
			if err != nil {
				t.Fatal(err)
			}
			leave()
		}
		if err := s.Stuck(); err != nil {
			t.Error(err)
		}
		time.Sleep(stuckAfter + time.Second)
		if s.Stuck() == nil {
			t.Error("nothing gets through, and it does not show")
		}
		late, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		if _, err := s.gate.enter(late, "greedy"); err == nil {
			t.Error("who waits too long gets in")
		}
		close(release)
		synctest.Wait()
		if n := greedy.Load(); n != 10*maxEnvelopes || len(s.gate.boxes) != 0 || s.Stuck() != nil {
			t.Errorf("in the end %d got through, %d boxes are kept, %v", n, len(s.gate.boxes), s.Stuck())
		}
	})
}
