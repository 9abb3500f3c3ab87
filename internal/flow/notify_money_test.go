package flow

import (
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
)

// Who decides about money is told whose limit is nearly spent, and so is the member whose it is.
func TestNearlySpentSaysWhose(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, tx *db.Tx) {
		if err := seed.Add(tx, seed.Account{ID: "thrifty"}, seed.User{ID: "rita"}, seed.User{ID: "tom"},
			seed.Member{Account: "thrifty", User: "rita", Role: "owner"}, seed.Member{Account: "thrifty", User: "tom"},
			seed.Repo{ID: "r1", Account: "thrifty"}, seed.Plan{ID: "p1", Account: "thrifty", Repo: "r1"}); err != nil {
			t.Fatal(err)
		}
		if _, err := seed.AddKey.Exec(tx, "k1", "thrifty", "ok"); err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			scope, ref, title string
			to                []string
		}{
			{budget.Account, "thrifty", "the account's budget are spent: 0.004 of 0.005 US", []string{"rita"}},
			{budget.Member, "tom", "the budget of tom are", []string{"rita", "tom"}},
			{budget.Member, "rita", "the budget of rita are", []string{"rita"}},
			{budget.Member, "gone", "a member's budget are", []string{"rita", "gone"}},
			{budget.Repo, "r1", "the budget of thrifty/", []string{"rita"}},
			{budget.Key, "k1", "the budget of the key “k1” are", []string{"rita"}},
			{budget.Key, "gone", "a key's budget are", []string{"rita"}},
			{budget.Plan, "p1", "the budget of the plan “", []string{"rita"}},
			{budget.Plan, "gone", "a plan's budget are", []string{"rita"}},
		} {
			err := tx.As("thrifty", func() error {
				e := event.Recorded{Kind: budget.NearlySpentEvent.Name(), Object: x.ref}
				e.Data = []byte(`{"scope": "` + x.scope + `", "usd": 0.005, "spent_usd": "0.004"}`)
				n, ok, err := Notify{}.nearlySpent(tx, e)
				if !ok || !strings.Contains(n.Title, x.title) || !slices.Equal(n.To, x.to) {
					t.Errorf("%s of %s: %q to %q", x.scope, x.ref, n.Title, n.To)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
