package github

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	peer "yardmaster/internal/proof/github"
)

// paced are Limits with a clock that waiting moves.
func paced() (Limits, *time.Time) {
	now := time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC)
	return NewLimits(func() time.Time { return now }, func(_ context.Context, d time.Duration) error {
		now = now.Add(d)
		return nil
	}), &now
}

// busyAfter is how long Take says to wait; 0: it lets the call go.
func busyAfter(t *testing.T, err error) time.Duration {
	t.Helper()
	if err == nil {
		return 0
	}
	e := as[*codehost.BusyError](t, "a limit", err)
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
	still := NewLimits(func() time.Time { return start }, func(context.Context, time.Duration) error { return nil })
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

// TestLimitsOfTheHost holds that the answers of GitHub reach the limits: after a refusal
// nothing is asked, and urgency comes from the context.
func TestLimitsOfTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, peer.Options{Limits: peer.Limits{Primary: 10}})
	w.host = w.connect(func(c *Config) { c.Limits = nil })
	ctx := t.Context()
	w.repo.OpenIssue(w.bob, "x", "")
	ask := func(ctx context.Context) error { _, _, err := w.host.Issue(ctx, w.shop, 1, ""); return err }
	n := 0
	for ; n < 20; n++ {
		if ask(ctx) != nil {
			break
		}
	}
	if n != 8 { // runs leave a fifth
		t.Errorf("%d requests of 10 passed", n)
	}
	for n = 0; n < 20; n++ {
		if ask(codehost.WithUrgency(ctx, codehost.ForPeople)) != nil {
			break
		}
	}
	if n != 2 {
		t.Errorf("people had %d requests", n)
	}
	used := w.inst.Used()
	if e := as[*codehost.BusyError](t, "spent", ask(ctx)); !e.Limit || !errors.Is(e, errPace) || w.inst.Used() != used {
		t.Errorf("it says %+v, and %d were asked", e, w.inst.Used()-used)
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	long := "```go\n" + strings.Repeat("é\n", 25000)
	for name, s := range map[string]string{"short": "x", "long": long, "not UTF-8": "a\xff\x00b"} {
		got := marked(s, once1)
		if len(got) > longest+100 || !strings.Contains(got, marker(once1)) || unmarked(got) == got {
			t.Errorf("%s: %d bytes, ends %q", name, len(got), got[max(0, len(got)-60):])
		}
	}
	if got := unmarked(marked("Hello.\n\nBye.", once1)); got != "Hello.\n\nBye." {
		t.Errorf("back comes %q", got)
	}
	if got := marked("x "+marker(once2), once1); strings.Contains(got, marker(once2)) {
		t.Errorf("a marker of the text counts: %q", got)
	}
	if at := since(once1); at.IsZero() {
		t.Error("the id of an intent tells no time")
	}
	if at := since("not a UUID"); !at.IsZero() {
		t.Errorf("a text tells %s", at)
	}
}
