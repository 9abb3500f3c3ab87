package fleet

import (
	"errors"
	"fmt"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/seed"
)

// mayTakeOf is the condition of a run of a repository.
var mayTakeOf = db.Q[bool](`SELECT CASE WHEN ` + MayHoldOf + ` THEN TRUE ELSE FALSE END FROM boxes b
	CROSS JOIN (SELECT CAST($2 AS TEXT) AS account_id, CAST($3 AS TEXT) AS repo_id) w WHERE b.id = $1`)

// lent is all that decides what a box that is lent takes. The box is enrolled in home; web
// and api are repositories of away.
type lent struct {
	target                  string // of the owner, as it says beside the gift
	pool                    bool   // or pinned to web
	parked                  bool
	private, enabled, takes bool // of web
	letsIn                  bool // the floors of away
}

func (s lent) open() bool { return !s.parked && s.letsIn && !s.private && s.enabled && s.takes }

// set puts the database into a state, in which api is like web but never private.
func (s lent) set(tx *db.Tx) error {
	var to *string
	if !s.pool {
		web := "web"
		to = &web
	}
	errs := []error{}
	do := func(_ int64, err error) { errs = append(errs, err) }
	do(seed.DropGifts.Exec(tx))
	do(seed.SetTarget.Exec(tx, "box", s.target, nil))
	do(seed.LetIn.Exec(tx, "away", s.letsIn))
	do(seed.SetPrivate.Exec(tx, "web", s.private))
	do(seed.SetEnabled.Exec(tx, "web", s.enabled))
	do(seed.SetConsent.Exec(tx, "web", s.takes, false))
	do(seed.LendBox.Exec(tx, "home", to, "box"))
	if s.parked {
		do(seed.TakeBoxBack.Exec(tx, "box"))
	}
	return errors.Join(errs...)
}

// TestLentBox tries each of 128 states: a box that is lent takes the work of public repositories
// that take gifts and that it is lent to, in accounts that let it in, and no other work, not its
// own account's either; one that was taken back is as before.
func TestLentBox(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Account{ID: "home"}, seed.Account{ID: "away"}, seed.Account{ID: "else"},
				seed.Box{ID: "box", Account: "home"},
				seed.Repo{ID: "mine", Account: "home", Name: "mine"}, seed.Repo{ID: "web", Account: "away", Name: "web"},
				seed.Repo{ID: "api", Account: "away", Name: "api"}, seed.Repo{ID: "far", Account: "else", Name: "far"})
			for _, account := range []string{"home", "away", "else"} {
				_, err1 := seed.FillQueue.Exec(tx, account)
				err = errors.Join(err, err1)
			}
			for _, r := range []string{"mine", "api", "far"} {
				_, err1 := seed.SetPrivate.Exec(tx, r, false)
				_, err2 := seed.SetConsent.Exec(tx, r, true, false)
				err = errors.Join(err, err1, err2)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 128 {
			bit := func(n int) bool { return i>>n&1 == 1 }
			s := lent{[]string{"org", "shared"}[i&1], bit(1), bit(2), bit(3), bit(4), bit(5), bit(6)}
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				if err := s.set(tx); err != nil {
					return err
				}
				before := s.target == "shared" && s.parked
				away := before || s.open() || !s.parked && s.letsIn && s.pool // by api
				want := map[string]bool{"web": before || s.open(), "api": before || s.pool && !s.parked && s.letsIn, "far": before}
				for _, r := range []string{"web", "api", "far"} {
					account := "away"
					if r == "far" {
						account = "else"
					}
					got, err := mayTakeOf.One(tx, "box", account, r)
					if err != nil {
						return err
					}
					if got != want[r] {
						return fmt.Errorf("%+v: a run in %s: %t, want %t", s, r, got, want[r])
					}
				}
				for account, want := range map[string]bool{"home": s.parked, "away": away, "else": before} {
					got, err := mayTake.One(tx, "box", account)
					if err != nil {
						return err
					}
					right, holds, err := Holding(tx, "box", account)
					if err != nil {
						return err
					}
					if got != want || holds != (want || account == "home") {
						return fmt.Errorf("%+v: work of %s: may %t, holds %t; want %t", s, account, got, holds, want)
					}
					if gift := holds && account != "home" && !s.parked; gift != (right.Kind == Gift) {
						return fmt.Errorf("%+v: the right in %s is %+v", s, account, right)
					}
				}
				if s.parked {
					return nil
				}
				served, err := Served(tx, "box", Lent, "home")
				if err != nil {
					return err
				}
				if looks := len(served) == 1 && served[0] == "away"; looks != away || len(served) > 1 {
					return fmt.Errorf("%+v: it looks at %v", s, served)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
