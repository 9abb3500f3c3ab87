package onboarding

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/seed"
)

// TestBegun holds that neither the task that sets a new repository up nor its pull request
// is work that the account has begun.
func TestBegun(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "web", Account: "acme", Name: "web"},
				seed.Task{ID: "setup", Account: "acme", Repo: "web", Kind: "setup"},
				seed.Pull{ID: "pr", Account: "acme", Repo: "web", Task: new("setup")}); err != nil {
				return err
			}
			want := func(want bool) {
				if f, err := selectFacts.One(tx, "acme"); err != nil || f.Begun != want {
					t.Errorf("begun is %v, want %v; %v", f.Begun, want, err)
				}
			}
			want(false)
			err := seed.Add(tx, seed.Task{ID: "task", Account: "acme", Repo: "web"})
			want(true)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}
