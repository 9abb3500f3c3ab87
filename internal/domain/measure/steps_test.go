package measure

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/seed"
)

// TestBegun holds that the task that sets a new repository up is no work that the account
// has begun, and that its pull request is: somebody has to look at it.
func TestBegun(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "web", Account: "acme", Name: "web"},
				seed.Task{ID: "setup", Account: "acme", Repo: "web", Kind: "setup"}); err != nil {
				return err
			}
			want := func(want bool) {
				if f, err := firstSteps.One(tx, "acme"); err != nil || f.Begun != want {
					t.Errorf("begun is %v, want %v; %v", f.Begun, want, err)
				}
			}
			want(false)
			err := seed.Add(tx, seed.Pull{ID: "pr", Account: "acme", Repo: "web", Task: new("setup")})
			want(true)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
}
