package seed

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) { dbtest.Declared(t) }

// TestDefaults holds that a row of each type can be inserted with its defaults.
func TestDefaults(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			return Add(tx, Account{ID: "acme"}, User{ID: "ada"}, User{ID: "bob", Waiting: true}, Member{Account: "acme", User: "ada"},
				Repo{ID: "web", Account: "acme"}, Box{ID: "box", Account: "acme"}, Task{ID: "task", Account: "acme", Repo: "web"},
				Run{ID: "run", Account: "acme", Task: "task", Repo: "web", Box: "box"}, Pull{ID: "pr", Account: "acme", Repo: "web"},
				Action{ID: "ask", Account: "acme", Pull: "pr", Kind: "merge"}, Plan{ID: "plan", Account: "acme", Repo: "web"},
				Provider{Account: "acme"},
				Session{ID: "session", Account: "acme", Repo: "web"})
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
