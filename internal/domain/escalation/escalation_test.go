package escalation

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/seed"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

var (
	told = db.Q[happened](`SELECT kind, repo_id, data FROM audit WHERE account_id = $1 AND object = $2 ORDER BY seq`)
)

type happened struct {
	Kind   string
	RepoID *string
	Data   string
}

// TestRaisedIsTold: every escalation has its event, in the same transaction, without
// texts that look like secrets.
func TestRaisedIsTold(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		ctx := db.WithAccount(context.Background(), "acme")
		web, asked := "web", "ask-1"
		write := func(fn func(*db.Tx) error) {
			t.Helper()
			if err := d.Write(ctx, fn); err != nil {
				t.Fatal(err)
			}
		}
		write(func(tx *db.Tx) error {
			err1 := seed.Add(tx, seed.Account{ID: "acme"})
			err2 := seed.Add(tx, seed.Repo{ID: web, Account: "acme", Name: "web"})
			return errors.Join(err1, err2)
		})
		var ids [2]string
		undone := errors.New("undone")
		var lost string
		if err := d.Write(ctx, func(tx *db.Tx) (err error) {
			lost, err = Raise(tx, Draft{Category: "unclear", Title: "t", Body: "b", Reason: "r"})
			return errors.Join(err, undone)
		}); !errors.Is(err, undone) {
			t.Fatal(err)
		}
		write(func(tx *db.Tx) (err error) {
			ids[0], err = Raise(tx, Draft{RepoID: &web, Category: "unclear", Title: "t", Body: "b", Reason: "password=hunter22",
				AskID: &asked})
			return err
		})
		write(func(tx *db.Tx) (err error) {
			ids[1], err = Raise(tx, Draft{Category: "sensitive", Title: "t", Body: "b", Reason: "r", AskID: &asked})
			return err
		})
		write(func(tx *db.Tx) error { return ResolveOfAsk(tx, asked, "unclear", "done") })
		for escalationID, want := range map[string][]string{
			lost: nil,
			ids[0]: {`{"ask_id":"ask-1","category":"unclear","escalation_id":"` + ids[0] +
				`","issue_id":null,"reason":"password=[redacted]","repo":"acme/web","url":null}`, `{"ask_id":"ask-1","note":"done"}`},
			ids[1]: {`{"ask_id":"ask-1","category":"sensitive","escalation_id":"` + ids[1] +
				`","issue_id":null,"reason":"r","repo":null,"url":null}`},
		} {
			var rows []happened
			if err := d.Read(ctx, func(tx *db.Tx) (err error) { rows, err = told.All(tx, "acme", escalationID); return err }); err != nil {
				t.Fatal(err)
			}
			if len(rows) != len(want) {
				t.Fatalf("%+v", rows)
			}
			for i, r := range rows {
				if kind := []string{"escalation.raised", "escalation.resolved"}[i]; r.Kind != kind || r.Data != want[i] ||
					!json.Valid([]byte(r.Data)) {
					t.Errorf("%s %s, want %s %s", r.Kind, r.Data, kind, want[i])
				}
			}
		}
	})
}

// What people were asked about a repository is resolved by policy once its cause has gone
// away; what has another title, or is another account's, stays.
func TestResolvedByPolicy(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		as := func(account string, fn func(*db.Tx) error) {
			t.Helper()
			if err := d.Write(db.WithAccount(t.Context(), account), fn); err != nil {
				t.Fatal(err)
			}
		}
		web := "web"
		var ids []string
		as("acme", func(tx *db.Tx) error {
			ids = nil
			err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"}, seed.Repo{ID: web, Account: "acme", Name: "web"})
			if err != nil {
				return err
			}
			for _, title := range []string{"main fails", "next fails"} {
				raised, err := Raise(tx, Draft{RepoID: &web, Category: "base_broken", Title: title})
				if err != nil {
					return err
				}
				ids = append(ids, raised)
			}
			return nil
		})
		healed := About{RepoID: web, Category: "base_broken", Title: "main fails", Note: "It passes."}
		resolved := func() (out []string) {
			as("acme", func(tx *db.Tx) error {
				out = nil
				for _, one := range ids {
					r, err := byID.One(tx, "acme", one)
					if err != nil {
						return err
					}
					if r.ResolvedBy != nil {
						out = append(out, r.Title+" by "+*r.ResolvedBy+": "+*r.Note)
					}
				}
				return nil
			})
			return out
		}
		as("rival", func(tx *db.Tx) error { return ResolveOfRepo(tx, healed) })
		if got := resolved(); len(got) != 0 {
			t.Errorf("another account has resolved %q", got)
		}
		as("acme", func(tx *db.Tx) error { return ResolveOfRepo(tx, healed) })
		if got := resolved(); len(got) != 1 || got[0] != "main fails by policy: It passes." {
			t.Errorf("resolved: %q", got)
		}
	})
}
