// Package patience is how long a test waits for something to happen. A wait ends
// because the thing has happened, or because minutes are over: half of what was left of
// the time of the package, or six; how fast the machine is does not matter.
package patience

import (
	"context"
	"testing"
	"time"
)

const (
	// unbounded is the time of a package that has none (go test -timeout 0, a benchmark).
	unbounded = time.Hour
	// longest is a wait of a package that has much time: one test that waits in vain must
	// not hold up the suite for half of that.
	longest = 6 * time.Minute
	// rest is kept for saying what failed, and for tests to clean up.
	rest = 20 * time.Second
	// pace is how often Until looks.
	pace = 10 * time.Millisecond
)

// Of returns how long a wait that begins now may last: half of what is left of the time
// that go test gives the package (-timeout), less 20 s, but not more than six minutes. The
// other half is for the tests behind it, which would otherwise all fail with the first one.
// It is at least a second.
func Of(t testing.TB) time.Duration {
	left := unbounded
	if d, ok := t.(interface{ Deadline() (time.Time, bool) }); ok {
		if end, ok := d.Deadline(); ok {
			left = time.Until(end)
		}
	}
	return max(time.Second, min(longest, (left-rest)/2))
}

// Context returns a context of the test that ends when its patience does.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Of(t))
	t.Cleanup(cancel)
	return ctx
}

// Over returns a channel that is closed when the patience of the test ends: for a select
// whose other cases are what the test waits for.
func Over(t testing.TB) <-chan struct{} {
	t.Helper()
	return Context(t).Done()
}

// Receive returns the next value of a channel. The test fails if none comes, or if the
// channel is closed.
func Receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	v, ok := Take(t, ch)
	if !ok {
		t.Fatalf("%s did not come", what)
	}
	return v
}

// Take is Receive for a caller that says itself what is missing, such as one that is
// called when the test is over: it answers whether a value came.
func Take[T any](t testing.TB, ch <-chan T) (v T, ok bool) {
	t.Helper()
	timer := time.NewTimer(Of(t))
	defer timer.Stop()
	select {
	case v, ok = <-ch:
	case <-timer.C:
	}
	return v, ok
}

// Ended waits until a channel is closed, or a value comes. The test fails if neither
// happens.
func Ended[T any](t testing.TB, what string, ch <-chan T) {
	t.Helper()
	timer := time.NewTimer(Of(t))
	defer timer.Stop()
	select {
	case <-ch:
	case <-timer.C:
		t.Fatalf("%s did not come", what)
	}
}

// Until looks a hundred times a second whether something is so, and returns when it is.
// The test fails if it never is. Wait for an event where there is one.
func Until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !Come(t, ok) {
		t.Fatalf("not so in the end: %s", what)
	}
}

// Come is Until for a caller that says itself what is missing: it answers whether it
// came to be so.
func Come(t testing.TB, ok func() bool) bool {
	t.Helper()
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for end := time.Now().Add(Of(t)); ; <-tick.C {
		if ok() {
			return true
		}
		if time.Now().After(end) || t.Context().Err() != nil {
			return false
		}
	}
}
