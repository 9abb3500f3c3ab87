package budget

import (
	"errors"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
)

var (
	addPull = db.S(`INSERT INTO pulls (id, account_id, repo_id, number, title, body, url, state, head_ref, base_ref, head_sha, base_sha, author_kind, task_id, created_at, updated_at)
		VALUES ('pr', 'acme', 'repo', 1, 't', '', '', 'open', 'b', 'main', 'sha', 'base', 'agent', 'task', 0, 0)`)
	addPlan  = db.S(`INSERT INTO plans (id, account_id, repo_id, title, overview, source, revision, hold, created_by, created_at) VALUES ('plan', 'acme', 'repo', 't', '', 'file', 1, FALSE, 'system', 0)`)
	looks    = db.S(`UPDATE tasks SET pr_id = 'pr', plan_id = $2 WHERE id = $1`)
	ofPerson = db.S(`INSERT INTO sessions (id, account_id, repo_id, trigger, kind, started_at, requested_by) VALUES ($1, 'acme', 'repo', 'ask', 'triage', 0, $2)`)
)

// TestRoundsAndTriageCount: a repair counts for the task whose pull request it
// looks after, for that one's plan and for who asked for it; a triage for who
// asked.
func TestRoundsAndTriageCount(t *testing.T) {
	onBoth(t, map[string]int64{Task: 100_000, Member: 1_000_000}, func(t *testing.T, w *world) {
		plan := "plan"
		w.write(func(tx *db.Tx) error {
			_, err1 := addPlan.Exec(tx)
			_, err2 := addPull.Exec(tx)
			_, err3 := addTask.Exec(tx, "round", "acme", "repo", nil, "ada")
			_, err4 := looks.Exec(tx, "task", plan)
			_, err5 := looks.Exec(tx, "round", nil)
			_, err6 := addSession.Exec(tx, "fixes", "acme", "run-fixes", "round", "repo")
			_, err7 := ofPerson.Exec(tx, "judge", "ada")
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
		for k, want := range map[string]int64{"account acme": 95_000, "member ada": 95_000, "plan plan": 90_000, "task task": 90_000, "task round": 30_000} {
			if m[k].Spent != want {
				t.Errorf("%s has spent %d, want %d", k, m[k].Spent, want)
			}
		}
		if _, err := s.Reserve(t.Context(), "fixes", 20_000, 20_000); fault.From(err).Slug != SlugExhausted {
			t.Errorf("%v: the repair may spend what its task may not", err)
		}
		limit := int64(200_000)
		w.write(func(tx *db.Tx) error { return s.raised(tx, "acme", Task, "task", &limit) })
		if len(w.freed) != 1 || w.freed[0] != "round" {
			t.Errorf("freed %v", w.freed)
		}
	})
}

// TestUnpricedModelsAreHeld: where any limit holds, a model without a price is
// not called, until it has one or no limit is left.
func TestUnpricedModelsAreHeld(t *testing.T) {
	m := Model{Provider: "compatible", Name: "qwen", Key: "key"}
	onBoth(t, nil, func(t *testing.T, w *world) {
		s := w.node()
		for range 2 {
			if err := s.ReserveUnpriced(t.Context(), "s1", m); err != nil {
				t.Errorf("%v without a limit", err)
			}
		}
		w.write(func(tx *db.Tx) error { return s.Settle(tx, []Call{{"s1", "acme", 0, nil}, {"s1", "acme", 0, nil}}) })
		if err := s.Close(t.Context()); err != nil || len(s.purses) != 0 {
			t.Errorf("%v, %d purses are left", err, len(s.purses))
		}
	})
	for _, scope := range []string{"operator", Account, Member, Task} {
		onBoth(t, map[string]int64{scope: 1_000_000}, func(t *testing.T, w *world) {
			s, priced := w.node(), false
			s.Priced = func(_ *db.Tx, account string, of Model) (bool, error) {
				if account != "acme" || of != m {
					t.Errorf("asks about %v of %s", of, account)
				}
				return priced, nil
			}
			if err := s.ReserveUnpriced(t.Context(), "s1", m); !fault.IsKind(err, fault.PaymentRequired) || fault.From(err).Slug != SlugUnpriced {
				t.Fatalf("%s: %v", scope, err)
			}
			if w.halted["run-s1"] == "" {
				t.Errorf("%s: the run goes on", scope)
			}
			recheck := func() { w.write(func(tx *db.Tx) error { return s.Recheck(tx, "acme") }) }
			if recheck(); len(w.freed) != 0 {
				t.Errorf("%s: freed %v", scope, w.freed)
			}
			higher := int64(9_000_000)
			w.write(func(tx *db.Tx) error { return s.raised(tx, "acme", scope, "x", &higher) })
			priced = true
			if recheck(); len(w.freed) != 1 {
				t.Errorf("%s: freed %v at a price", scope, w.freed)
			}
			if recheck(); len(w.freed) != 1 {
				t.Errorf("%s: freed twice: %v", scope, w.freed)
			}
		})
	}
}
