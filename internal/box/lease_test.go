package box

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"yardmaster/internal/protocol"
)

func TestLeaseIsCountedFromWhenTheRequestWasSent(t *testing.T) {
	t.Parallel()
	timing := Timing{}.withDefaults()
	const killAfter = 50 * time.Second
	for _, c := range []struct {
		name string
		use  func(*lease)
		want time.Duration // from the first request
	}{
		{"never renewed", func(*lease) {}, killAfter},
		{"an answer that took 15 s", func(l *lease) {
			time.Sleep(20 * time.Second)
			sent := time.Now()
			time.Sleep(15 * time.Second)
			l.extend(sent, protocol.LeaseTTL)
		}, 20*time.Second + killAfter},
		{"an older answer that comes late", func(l *lease) {
			old := time.Now()
			time.Sleep(20 * time.Second)
			l.extend(time.Now(), protocol.LeaseTTL)
			l.extend(old, protocol.LeaseTTL)
		}, 20*time.Second + killAfter},
		{"less than usual", func(l *lease) { l.extend(time.Now(), 12*time.Second) }, 10 * time.Second},
		{"more than usual", func(l *lease) { l.extend(time.Now(), time.Hour) }, 50 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				l := newLease(timing, began, protocol.LeaseTTL)
				lost := make(chan time.Duration, 1)
				go func() {
					if l.watch(t.Context()) {
						lost <- time.Since(began)
					}
				}()
				c.use(l)
				if got := <-lost; got != c.want {
					t.Errorf("lost after %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestWatchEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if newLease(Timing{}.withDefaults(), time.Now(), protocol.LeaseTTL).watch(ctx) {
			t.Error("a lease that holds was lost")
		}
	})
}

// A push that fails is tried again at longer and longer intervals.
func TestPushPause(t *testing.T) {
	t.Parallel()
	b := &box{cfg: Config{Timing: Timing{}.withDefaults()}}
	var total time.Duration
	for n, want := range map[int]time.Duration{0: time.Second, 1: 2 * time.Second, 5: 32 * time.Second, 6: time.Minute, 1000: time.Minute} {
		if got := b.pushPause(n); got != want {
			t.Errorf("after push %d: %s, want %s", n, got, want)
		}
	}
	for n := range missingTries - 1 {
		total += b.pushPause(n)
	}
	if total > b.cfg.Timing.Leave {
		t.Errorf("a box that is stopped waits %s for a repository that there is not", total)
	}
}
