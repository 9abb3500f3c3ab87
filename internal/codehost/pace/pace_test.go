package pace

import (
	"context"
	"errors"
	"testing"
	"time"

	"yardmaster/internal/codehost"
)

// paced are Limits with a clock that waiting moves.
func paced() (Limits, *time.Time) {
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	return Local(func() time.Time { return now }, moving{&now}), &now
}

// moving is a Waiter that moves a clock, if there is one.
type moving struct{ now *time.Time }

// Wait implements Waiter.
func (m moving) Wait(_ context.Context, d time.Duration) error {
	if m.now != nil {
		*m.now = m.now.Add(d)
	}
	return nil
}

// busyAfter is how long Take says to wait; 0: it lets the call go.
func busyAfter(t *testing.T, err error) time.Duration {
	t.Helper()
	if err == nil {
		return 0
	}
	e, is := errors.AsType[*codehost.BusyError](err)
	if !is {
		t.Fatal(err)
	}
	if !e.Limit || e.After <= 0 {
		t.Errorf("it says %+v", e)
	}
	return e.After
}

func TestWritesAreASecondApart(t *testing.T) {
	t.Parallel()
	limits, now := paced()
	start := *now
	for range 5 {
		if err := limits.Take(t.Context(), "a", Cost{Write: true}); err != nil {
			t.Fatal(err)
		}
	}
	if passed := now.Sub(start); passed != 4*time.Second {
		t.Errorf("5 writes took %s", passed)
	}
	if err := limits.Take(t.Context(), "b", Cost{Write: true}); err != nil || now.Sub(start) != 4*time.Second {
		t.Error("installations wait for each other")
	}
	if err := limits.Take(t.Context(), "a", Cost{}); err != nil || now.Sub(start) != 4*time.Second {
		t.Error("a read waits for writes")
	}
	still := Local(func() time.Time { return start }, moving{})
	for i := range 10 {
		err := still.Take(t.Context(), "a", Cost{Write: true})
		if waits := i > 5; waits != (busyAfter(t, err) > 0) {
			t.Errorf("write %d of a burst: %v", i, err)
		}
	}
}

func TestContentIsRationed(t *testing.T) {
	t.Parallel()
	limits, now := paced()
	count := func(u codehost.Urgency) (n int) {
		for limits.Take(t.Context(), "a", Cost{Write: true, Content: true, Urgency: u}) == nil {
			n++
		}
		return n
	}
	for _, c := range []struct {
		urgency codehost.Urgency
		want    int
	}{{codehost.ForReviews, 350}, {codehost.ForRuns, 50}, {codehost.ForPeople, 50}, {codehost.ForSweeps, 0}} {
		if got := count(c.urgency); got != c.want {
			t.Errorf("urgency %d makes %d, not %d", c.urgency, got, c.want)
		}
	}
	after := busyAfter(t, limits.Take(t.Context(), "a", Cost{Write: true, Content: true, Urgency: codehost.ForPeople}))
	*now = now.Add(after)
	if got := count(codehost.ForPeople); got != 1 {
		t.Errorf("after %s there is room for %d", after, got)
	}
}

func TestUrgentCallsAreLastToStop(t *testing.T) {
	t.Parallel()
	limits, now := paced()
	for _, c := range []struct {
		remaining int
		last      codehost.Urgency // the least urgent that passes
	}{
		{5000, codehost.ForSweeps}, {2400, codehost.ForReviews}, {1200, codehost.ForRuns}, {900, codehost.ForPeople},
		{0, codehost.ForPeople - 1},
	} {
		limits.Note("a", Note{Resource: "core", Limit: 5000, Remaining: c.remaining, Reset: now.Add(20 * time.Minute)})
		for u := codehost.ForPeople; u <= codehost.ForSweeps; u++ {
			err := limits.Take(t.Context(), "a", Cost{Urgency: u})
			if (err == nil) != (u <= c.last) {
				t.Errorf("%d remain, urgency %d: %v", c.remaining, u, err)
			}
			if err != nil && busyAfter(t, err) != 20*time.Minute {
				t.Errorf("it says %v", err)
			}
		}
	}
	*now = now.Add(21 * time.Minute)
	if err := limits.Take(t.Context(), "a", Cost{Urgency: codehost.ForSweeps}); err != nil {
		t.Errorf("the next hour: %v", err)
	}
	limits.Note("a", Note{Blocked: time.Minute})
	if after := busyAfter(t, limits.Take(t.Context(), "a", Cost{Urgency: codehost.ForPeople})); after != time.Minute {
		t.Errorf("blocked for %s", after)
	}
}

// TestRefusalsDouble holds how long nothing is called after a refusal that names no time:
// a minute, and twice as long each time that it is refused again, up to an hour. Refusals
// of calls that were under way together count once, and after a calm it begins anew.
func TestRefusalsDouble(t *testing.T) {
	t.Parallel()
	limits, now := paced()
	refuse := func() time.Duration {
		limits.Note("a", Note{Refused: true})
		limits.Note("a", Note{Refused: true}) // of a call that was under way
		return busyAfter(t, limits.Take(t.Context(), "a", Cost{Urgency: codehost.ForPeople}))
	}
	for i, minutes := range []float64{1, 2, 4, 8, 16, 32, 60, 60} {
		after := refuse()
		if after.Minutes() != minutes {
			t.Errorf("refusal %d: %s", i+1, after)
		}
		*now = now.Add(after + 9*time.Minute)
	}
	limits.Note("a", Note{Blocked: 30 * time.Second})
	if after := refuse(); after != 30*time.Second {
		t.Errorf("the host has named a time, and it waits %s", after)
	}
	*now = now.Add(time.Hour)
	if after := refuse(); after != time.Minute {
		t.Errorf("after a calm: %s", after)
	}
}
