package task

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "yardmaster/internal/proof/chance" // seeds rapid
)

func TestTerminalStatesStay(t *testing.T) {
	t.Parallel()
	for _, from := range Statuses() {
		for _, to := range Statuses() {
			if from.Terminal() && Allowed(from, to) && !(from == Failed && (to == Pending || to == AwaitingCI)) {
				t.Errorf("%s -> %s leaves a final state", from, to)
			}
		}
		if !from.Terminal() && !Allowed(from, Cancelled) {
			t.Errorf("%s cannot be cancelled", from)
		}
		if from.InFlight() && !Allowed(from, Pending) {
			t.Errorf("%s cannot be taken back from its box", from)
		}
	}
}

func TestLadder(t *testing.T) {
	t.Parallel()
	type step struct {
		kind string
		to   Status
		wait time.Duration
	}
	for name, steps := range map[string][]step{
		"three charged tries": {{AgentError, Pending, 30 * time.Second}, {RunTimeout, Pending, 5 * time.Minute}, {AgentError, Failed, 0}},
		"five in a row that were nobody's fault": {{BoxLost, Pending, 0}, {LeaseExpired, Pending, 0},
			{ProviderRateLimit, Pending, 30 * time.Minute},
			{BoxDrained, Pending, 0}, {BoxLost, Failed, 0}},
		"a charged try breaks the row": {{BoxLost, Pending, 0}, {BoxLost, Pending, 0}, {BoxLost, Pending, 0}, {BoxLost, Pending, 0},
			{AgentError, Pending, 30 * time.Second}, {BoxLost, Pending, 0}},
		"any number of boxes that were unfit": {{BoxUnfit, Pending, 0}, {BoxUnfit, Pending, 0}, {BoxUnfit, Pending, 0},
			{BoxUnfit, Pending, 0},
			{BoxUnfit, Pending, 0}, {BoxUnfit, Pending, 0}},
		"an unfit box neither breaks the row nor adds to it": {{BoxLost, Pending, 0}, {BoxLost, Pending, 0}, {BoxLost, Pending, 0},
			{BoxUnfit, Pending, 0},
			{BoxLost, Pending, 0}, {BoxUnfit, Pending, 0}, {BoxLost, Failed, 0}},
		"an unfit box is no charged try": {{AgentError, Pending, 30 * time.Second}, {BoxUnfit, Pending, 0},
			{AgentError, Pending, 5 * time.Minute},
			{BoxUnfit, Pending, 0}, {AgentError, Failed, 0}},
		"parked":        {{Blocked, Held, 0}},
		"out of budget": {{BudgetExhausted, Held, 0}},
		"hopeless":      {{PolicyRefused, Failed, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var charged, uncharged int64
			for i, s := range steps {
				to, wait, c, u := afterFailure(consequences[s.kind], charged, uncharged, 3, DefaultBackoff)
				if to != s.to || wait != s.wait {
					t.Fatalf("step %d, %s: %s after %s, want %s after %s", i, s.kind, to, wait, s.to, s.wait)
				}
				charged, uncharged = c, u
			}
		})
	}
}

func TestBranchName(t *testing.T) {
	t.Parallel()
	const id = "0123abcd-0000-4000-8000-000000000000"
	for title, want := range map[string]string{
		"Fix the Login!  (again)": "svc/fix-the-login-again--0123abcd",
		"修复":                      "svc/task--0123abcd",
		"--- a":                   "svc/a--0123abcd",
	} {
		if got := branchName(title, id); got != want {
			t.Errorf("branchName(%q) = %s, want %s", title, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := branchName(rapid.String().Draw(t, "title"), id)
		slug := strings.TrimSuffix(strings.TrimPrefix(b, "svc/"), "--0123abcd")
		if slug == "" || len(slug) > slugLength || strings.Contains(slug, "--") ||
			strings.Trim(slug, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			t.Fatalf("branch %q", b)
		}
	})
}

// Tries that the faults of boxes end are not charged: they are slowed down.
func TestPace(t *testing.T) {
	t.Parallel()
	backoff := []time.Duration{time.Minute, time.Hour}
	of := func(kinds ...string) (out []Ending) {
		for _, k := range kinds {
			out = append(out, Ending{Outcome: "failed", FailureKind: &k})
		}
		return out
	}
	unfit := func(n int) []string { return slices.Repeat([]string{BoxUnfit}, n) }
	for _, x := range []struct {
		endings []Ending
		want    time.Duration
	}{
		{nil, 0},
		{of(unfit(3)...), 0},
		{of(unfit(4)...), time.Minute},
		{of(unfit(5)...), time.Hour},
		{of(unfit(50)...), time.Hour},
		{of(append(unfit(9), BoxLost)...), 0},
		{of(append(append(unfit(9), AgentError), unfit(2)...)...), 0},
		{append(of(unfit(4)...), Ending{Outcome: "succeeded"}), 0},
	} {
		if got := pace(x.endings, backoff); got != x.want {
			t.Errorf("after %d tries: %s, want %s", len(x.endings), got, x.want)
		}
	}
}
