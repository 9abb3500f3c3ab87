package db_test

import (
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

var (
	setReview = db.S(`UPDATE pulls SET review = $2 WHERE id = $1`)
	addReview = db.S(`INSERT INTO review_runs (id, account_id, repo_id, pr_id, head_sha, merge_base, change, state, blind, verdict, due_at,
		created_at, ended_at) VALUES ($1, 'acme', 'web', $1, $2, 'b', 'c', $3, $4, $5, 0, 0, 0)`)
	reviews = db.Q[string](`SELECT id || ' ' || review FROM pulls ORDER BY id`)
)

// A head whose review was taken for done, and that no run has come to a verdict about, was
// not reviewed.
func TestUnreviewedHeadsOfTheRecord(t *testing.T) {
	verdict := "success"
	again(t, "0221_unreviewed.sql", func(text string) (string, bool) { return text, true }, func(tx *db.Tx) error {
		if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "web", Account: "acme"}); err != nil {
			return err
		}
		for i, r := range []struct {
			pull, was, sha, state, blind string
			verdict                      *string
		}{
			{"blind", "done", "sha", "completed", "no_credential", &verdict},
			{"earlier", "done", "other", "completed", "", &verdict},
			{"failed", "done", "sha", "failed", "", &verdict},
			{"never", "done", "", "", "", nil},
			{"read", "done", "sha", "completed", "", &verdict},
			{"running", "running", "", "", "", nil},
		} {
			if err := seed.Add(tx, seed.Pull{ID: r.pull, Account: "acme", Repo: "web", Number: i + 1}); err != nil {
				return err
			}
			if _, err := setReview.Exec(tx, r.pull, r.was); err != nil {
				return err
			}
			if r.sha == "" {
				continue
			}
			if _, err := addReview.Exec(tx, r.pull, r.sha, r.state, r.blind, r.verdict); err != nil {
				return err
			}
		}
		return nil
	}, func(tx *db.Tx) error {
		got, err := reviews.All(tx)
		want := []string{"blind none", "earlier none", "failed none", "never none", "read done", "running running"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, not %q", got, want)
		}
		return err
	})
}
