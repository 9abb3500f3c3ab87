package member

import (
	"context"
	"errors"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) { dbtest.Declared(t) }

var (
	addAccount = db.S(`INSERT INTO accounts (id, login, kind, tier, seats, created_at) VALUES ('acme', 'acme', 'organization', 'self_hosted', 2, 0)`)
	addUser    = db.S(`INSERT INTO users (id, login, name, email, created_at) VALUES ($1, $1, $1, $1, 0)`)
	addOwner   = db.S(`INSERT INTO memberships (account_id, user_id, role, created_at) VALUES ('acme', $1, 'owner', 0)`)
)

// Two owners who step down, or take each other down, at the same moment leave
// one.
func TestSomebodyStaysOwner(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := &Service{DB: d, Forget: func(string) {}}
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			_, err := addAccount.Exec(tx)
			for _, user := range []string{"ada", "bob"} {
				_, failed := addUser.Exec(tx, user)
				_, other := addOwner.Exec(tx, user)
				err = errors.Join(err, failed, other)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		as := func(user string) context.Context {
			a := policy.Actor{Credential: policy.PAT, UserID: user, AccountID: "acme", Role: policy.Owner}
			return db.WithAccount(policy.With(context.Background(), a), "acme")
		}
		errs := make([]error, 2)
		var both sync.WaitGroup
		both.Go(func() { _, errs[0] = s.setRole(as("ada"), setRoleIn{UserID: "bob", Role: policy.Member}) })
		both.Go(func() { _, errs[1] = s.remove(as("bob"), memberIn{UserID: "ada"}) })
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("%v, %v: one and only one may succeed", errs[0], errs[1])
		}
		if err := errors.Join(errs...); !errors.Is(err, fault.Reason("last_owner", "")) {
			t.Error(err)
		}
	})
}
