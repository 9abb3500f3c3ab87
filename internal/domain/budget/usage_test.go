package budget

import (
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

// TestUsageParts holds that the ledger of a month is added up by model, repository, kind and day,
// dearest first, with nothing of another month or account.
func TestUsageParts(t *testing.T) {
	t.Parallel()
	onBoth(t, nil, func(t *testing.T, w *world) {
		march := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
		w.write(func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "rival"}, seed.Repo{ID: "other", Account: "acme"},
				seed.Repo{ID: "theirs", Account: "rival"},
				seed.Session{ID: "m1", Account: "acme", Repo: "repo", Model: "small"},
				seed.Session{ID: "m2", Account: "acme", Repo: "repo", Model: "large", Kind: "review"},
				seed.Session{ID: "m4", Account: "acme", Repo: "other", Model: "large"},
				seed.Session{ID: "m5", Account: "rival", Repo: "theirs", Model: "large"}); err != nil {
				return err
			}
			for _, m := range []addMinuteArgs{
				{AccountID: "acme", Minute: march.Add(-12*time.Hour - time.Minute), SessionID: "m4", Calls: 3, Unpriced: 3},
				{AccountID: "acme", Minute: march, SessionID: "m1", Calls: 2, CostMicros: new(int64(1_000_000))},
				{AccountID: "acme", Minute: march.Add(time.Minute), SessionID: "m1", Calls: 1, Unpriced: 1},
				{AccountID: "acme", Minute: march, SessionID: "m2", Calls: 1, CostMicros: new(int64(2_000_000))},
				{AccountID: "acme", Minute: march, SessionID: "m4", Calls: 1, CostMicros: new(int64(500_000))},
				{AccountID: "acme", Minute: march.AddDate(0, 1, 0), SessionID: "m2", Calls: 9, CostMicros: new(int64(9_000_000))},
				{AccountID: "rival", Minute: march, SessionID: "m5", Calls: 7, CostMicros: new(int64(7_000_000))},
			} {
				if _, err := addMinute.Exec(tx, m); err != nil {
					return err
				}
			}
			from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
			models, err := callsByModel.All(tx, "acme", from, from.AddDate(0, 1, 0))
			if err != nil {
				return err
			}
			want(t, "models", usageParts(models), part("large", "2.50", 2, 5, 3), part("small", "1.00", 1, 3, 1))
			repos, err := callsByRepo.All(tx, "acme", from, from.AddDate(0, 1, 0))
			want(t, "repositories", usageParts(repos), part("acme/repo", "3.00", 2, 4, 1), part("acme/other", "0.50", 1, 4, 3))
			if err != nil {
				return err
			}
			kinds, err := callsByKind.All(tx, "acme", from, from.AddDate(0, 1, 0))
			want(t, "kinds", usageParts(kinds), part("review", "2.00", 1, 1, 0), part("triage", "1.50", 2, 7, 4))
			if err != nil {
				return err
			}
			days, err := callsByDay.All(tx, "acme", from, from.AddDate(0, 1, 0))
			got, of := usageDays(days), []UsageDay{{Day: "2026-03-09", Spent: "0.00", Calls: 3, Unpriced: 3},
				{Day: "2026-03-10", Spent: "3.50", Calls: 5, Unpriced: 1}}
			if !slices.Equal(got, of) {
				t.Errorf("days: %+v, not %+v", got, of)
			}
			return err
		})
	})
}

func part(name, spent string, sessions, calls, unpriced int64) UsagePart {
	return UsagePart{Name: &name, Spent: spent, Sessions: sessions, Calls: calls, Unpriced: unpriced}
}

func want(t *testing.T, what string, got []UsagePart, want ...UsagePart) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %+v", what, got)
	}
	for i := range want {
		g, w := got[i], want[i]
		if g.Name == nil || *g.Name != *w.Name {
			t.Fatalf("%s: number %d is %+v, not %+v", what, i, g, w)
		}
		if g.Name, w.Name = nil, nil; g != w {
			t.Errorf("%s: number %d is %+v, not %+v", what, i, g, w)
		}
	}
}
