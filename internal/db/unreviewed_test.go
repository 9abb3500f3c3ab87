package db_test

import (
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

var (
	setReview = db.S(`UPDATE pulls SET review = $2 WHERE id = $1`)
	addReview = db.S(`INSERT INTO review_runs (id, account_id, repo_id, pr_id, head_sha, merge_base, change, state, blind, verdict, due_at,
		created_at, ended_at) VALUES ($1, 'acme', 'web', $1, $2, 'b', 'c', $3, $4, $5, 0, 0, 0)`)
	addFinding = db.S(`INSERT INTO review_findings (id, account_id, repo_id, pr_id, run_id, key, head_sha, file, side, start_line, line,
		symbol, anchor, severity, kind, claim, why, how_to_see, state, created_at, updated_at)
		VALUES ($1, 'acme', 'web', $2, $2, $1, 'sha', 'a.go', 'RIGHT', 0, 1, '', 'x', 'high', 'bug', $1, 'w', 'h', $3, 0, 0)`)
	ruled   = db.Q[string](`SELECT id FROM review_findings WHERE ruled ORDER BY id`)
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

// What was dismissed before a dismissal could be of a pull request alone made a rule, and counts
// as that.
func TestDismissedFindingsOfTheRecord(t *testing.T) {
	only := func(text string) (string, bool) {
		_, rest, ok := strings.Cut(text, "UPDATE ")
		statement, _, whole := strings.Cut(rest, ";")
		return "UPDATE " + statement + ";", ok && whole
	}
	again(t, "0251_looks.sql", only, func(tx *db.Tx) error {
		err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "web", Account: "acme"},
			seed.Pull{ID: "pr", Account: "acme", Repo: "web", Number: 1})
		if err != nil {
			return err
		}
		if _, err := addReview.Exec(tx, "pr", "sha", "completed", "", new("failure")); err != nil {
			return err
		}
		for _, state := range []string{"dismissed", "fixed", "posted"} {
			if _, err := addFinding.Exec(tx, state, "pr", state); err != nil {
				return err
			}
		}
		return nil
	}, func(tx *db.Tx) error {
		got, err := ruled.All(tx)
		if !slices.Equal(got, []string{"dismissed"}) {
			t.Errorf("%q", got)
		}
		return err
	})
}
