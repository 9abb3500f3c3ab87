package patience_test

import (
	"context"
	"testing"
	"time"

	"yardmaster/internal/proof/patience"
)

// late is a test whose package has so much time left.
type late struct {
	testing.TB
	left   time.Duration
	failed string
}

func (l *late) Deadline() (time.Time, bool) { return time.Now().Add(l.left), true }
func (l *late) Helper()                     {}
func (l *late) Fatalf(format string, _ ...any) {
	l.failed = format
	panic(l)
}

// fails tells whether a wait fails the test.
func (l *late) fails(wait func()) bool {
	l.failed = ""
	func() {
		defer func() { _ = recover() }()
		wait()
	}()
	return l.failed != ""
}

func TestPatienceIsHalfOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]time.Duration{
		40 * time.Minute: 6 * time.Minute,
		10 * time.Minute: 5*time.Minute - 10*time.Second, time.Minute: 20 * time.Second, 10 * time.Second: time.Second,
	} {
		got := patience.Of(&late{TB: t, left: left})
		if got > want || got < want-time.Second {
			t.Errorf("with %v left it waits %v, not %v", left, got, want)
		}
	}
}

func TestWaitsEnd(t *testing.T) {
	t.Parallel()
	l := &late{TB: t, left: time.Second}
	never := make(chan int)
	closed := make(chan int)
	close(closed)
	for name, wait := range map[string]func(){
		"Until, of what never is so":       func() { patience.Until(l, "never", func() bool { return false }) },
		"Receive, of what never comes":     func() { patience.Receive(l, "nothing", never) },
		"Receive, of a channel that ended": func() { patience.Receive(l, "nothing", closed) },
		"Ended, of what never ends":        func() { patience.Ended(l, "nothing", never) },
	} {
		if !l.fails(wait) {
			t.Errorf("%s does not fail the test", name)
		}
	}
	patience.Ended(t, "the end", closed)
	ctx := patience.Context(l)
	select {
	case <-ctx.Done():
	case <-patience.Over(t):
	}
	if ctx.Err() != context.DeadlineExceeded {
		t.Error("Context does not end:", ctx.Err())
	}
}
