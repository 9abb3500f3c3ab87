package budget

import (
	"errors"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/seed"
)

// TestRoundsAndTriageCount: a repair counts for the task that made the pull request,
// for the plan of that task and for the person who asked for it; a triage counts for
// the person who asked.
func TestRoundsAndTriageCount(t *testing.T) {
	t.Parallel()
	onBoth(t, map[string]int64{Task: 100_000, Member: 1_000_000}, func(t *testing.T, w *world) {
		plan := "plan"
		w.write(func(tx *db.Tx) error {
			err1 := seed.Add(tx, seed.Plan{ID: "plan", Account: "acme", Repo: "repo"})
			err2 := seed.Add(tx, seed.Pull{ID: "pr", Account: "acme", Repo: "repo", Task: new("task")})
			err3 := seed.Add(tx, seed.Task{ID: "round", Account: "acme", Repo: "repo", Status: "running", Budget: nil, By: new("ada")})
			_, err4 := seed.SetPlan.Exec(tx, "task", "pr", plan)
			_, err5 := seed.SetPlan.Exec(tx, "round", "pr", nil)
			err6 := seed.Add(tx, seed.Session{ID: "fixes", Account: "acme", Run: new("run-fixes"), Task: new("round"), Repo: "repo"})
			err7 := seed.Add(tx, seed.Session{ID: "judge", Account: "acme", Repo: "repo", By: new("ada")})
			return errors.Join(err1, err2, err3, err4, err5, err6, err7)
		})
		s := w.node()
		for session, cost := range map[string]int64{"s1": 60_000, "fixes": 30_000, "judge": 5_000} {
			n, err := s.Reserve(t.Context(), session, cost, cost)
			if err != nil {
				t.Fatal(session, err)
			}
			w.settle(s, session, n, cost)
			if err := s.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		m := w.meters()
		for k, want := range map[string]int64{"account acme": 95_000, "member ada": 95_000, "plan plan": 90_000, "task task": 90_000,
			"task round": 30_000} {
			if m[k].Spent != want {
				t.Errorf("%s has spent %d, want %d", k, m[k].Spent, want)
			}
		}
		if _, err := s.Reserve(t.Context(), "fixes", 20_000, 20_000); fault.From(err).Slug != SlugExhausted {
			t.Errorf("%v: the repair may spend what its task may not", err)
		}
		w.write(func(tx *db.Tx) error {
			_, err := seed.SetBudget.Exec(tx, "task", 200_000)
			return errors.Join(err, s.Recheck(tx, "acme"))
		})
		if len(w.freed) != 1 || w.freed[0] != "round" {
			t.Errorf("freed %v", w.freed)
		}
	})
}

// TestReviewsHaveAShare: a task's own work leaves a quarter of its budget to the reviews and
// repairs of its pull request, which may spend what the work has left over, too.
func TestReviewsHaveAShare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind         string
		work, review int64
	}{{"work", 75_000, 25_000}, {"work", 10_000, 90_000}, {"devops", 75_000, 25_000}} {
		onBoth(t, map[string]int64{Task: 100_000}, func(t *testing.T, w *world) {
			w.write(func(tx *db.Tx) error {
				err1 := seed.Add(tx, seed.Pull{ID: "pr", Account: "acme", Repo: "repo", Task: new("task")})
				err2 := seed.Add(tx, seed.Task{ID: "review", Account: "acme", Repo: "repo", Status: "running", Kind: "review"})
				_, err3 := seed.SetPlan.Exec(tx, "task", "pr", nil)
				_, err4 := seed.SetPlan.Exec(tx, "review", "pr", nil)
				err5 := seed.Add(tx, seed.Session{ID: "works", Account: "acme", Run: new("run-w"), Task: new("task"), Repo: "repo",
					Kind: c.kind})
				err6 := seed.Add(tx, seed.Session{ID: "looks", Account: "acme", Run: new("run-l"), Task: new("review"), Repo: "repo",
					Kind: "review"})
				return errors.Join(err1, err2, err3, err4, err5, err6)
			})
			s := w.node()
			n, err := s.Reserve(t.Context(), "works", 200_000, 1)
			if err != nil || n != 75_000 {
				t.Fatalf("the work may spend %d, %v", n, err)
			}
			w.settle(s, "works", n, c.work)
			w.end(s, "works")
			if n, err = s.Reserve(t.Context(), "looks", 200_000, 1); err != nil || n != c.review {
				t.Fatalf("the review may spend %d, %v, want %d", n, err, c.review)
			}
		})
	}
}

// TestUnpricedModelsAreHeld: where any limit applies, calls to a model without a
// price are refused until it has one.
func TestUnpricedModelsAreHeld(t *testing.T) {
	t.Parallel()
	m := Model{Provider: "compatible", Name: "qwen", Key: "key"}
	onBoth(t, nil, func(t *testing.T, w *world) {
		s := w.node()
		for range 2 {
			if err := s.ReserveUnpriced(t.Context(), "s1", m); err != nil {
				t.Errorf("%v without a limit", err)
			}
		}
		w.write(func(tx *db.Tx) error {
			return s.Settle(tx, []Call{{Session: "s1", Account: "acme"}, {Session: "s1", Account: "acme"}})
		})
		if err := s.Close(t.Context()); err != nil || len(s.reserves) != 0 {
			t.Errorf("%v, %d reserves are left", err, len(s.reserves))
		}
	})
	for _, scope := range []string{"operator", Account, Member, Task} {
		onBoth(t, map[string]int64{scope: 1_000_000}, func(t *testing.T, w *world) {
			s := w.node()
			if err := s.ReserveUnpriced(t.Context(), "s1", m); !fault.IsKind(err, fault.PaymentRequired) ||
				fault.From(err).Slug != SlugUnpriced {
				t.Fatalf("%s: %v", scope, err)
			}
			if w.halted["run-s1"] == "" {
				t.Errorf("%s: the run goes on", scope)
			}
			recheck := func() { w.write(func(tx *db.Tx) error { return s.Recheck(tx, "acme") }) }
			if recheck(); len(w.freed) != 0 {
				t.Errorf("%s: freed %v", scope, w.freed)
			}
			w.priced = true
			if recheck(); len(w.freed) != 1 {
				t.Errorf("%s: freed %v at a price", scope, w.freed)
			}
			if recheck(); len(w.freed) != 1 {
				t.Errorf("%s: freed twice: %v", scope, w.freed)
			}
			if len(w.asked) == 0 {
				t.Errorf("%s: no price was asked for", scope)
			}
			for _, a := range w.asked {
				if a != (priceAsked{"acme", m}) {
					t.Errorf("asks about %v of %s", a.model, a.account)
				}
			}
		})
	}
}
