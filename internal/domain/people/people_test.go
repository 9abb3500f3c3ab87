package people

import (
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// TestOnce holds that a person becomes a user, is approved, suspended and made a
// member once, although it is tried twice.
func TestOnce(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			ada := User{ID: "ada", Login: "ada", Name: "Ada", Email: "ada@example.com", PlatformAdmin: true}
			if err := Found(tx, ada, "hash", "acme", "acme", 2); err != nil {
				return err
			}
			bob, err := Meet(tx, Newcomer{Email: "bob@example.com", Login: "Ada"})
			if err != nil {
				return err
			}
			own, err := OwnAccount(tx, bob, TierFree, 0)
			if err != nil {
				return err
			}
			for name, do := range map[string]func() (bool, error){
				"approve": func() (bool, error) { return Approve(tx, bob) },
				"join":    func() (bool, error) { return Join(tx, "acme", bob, policy.Member) },
				"suspend": func() (bool, error) { return Suspend(tx, "ada") },
			} {
				for _, want := range []bool{true, false} {
					if did, err := do(); err != nil || did != want {
						t.Errorf("%s answers %v (%v), want %v", name, did, err, want)
					}
				}
			}
			u, err := ReadUser(tx, bob)
			if err != nil || u.Login != "ada-2" || u.Name != "ada-2" || u.ApprovedAt == nil {
				t.Errorf("%+v (%v)", u, err)
			}
			all, err := Memberships(tx, bob)
			if err != nil {
				return err
			}
			if want := []Membership{
				{"acme", "acme", KindOrganization, policy.Member},
				{own, "ada-2", KindUser, policy.Owner},
			}; !slices.Equal(all, want) {
				t.Errorf("%+v, want %+v", all, want)
			}
			if oldest, err := OldestOwned(tx, bob); err != nil || oldest != own {
				t.Errorf("owns %q for longest (%v), want %q", oldest, err, own)
			}
			if admins, err := LockOperators(tx); err != nil || len(admins) != 0 {
				t.Errorf("%v may act (%v), and the only operator is suspended", admins, err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
