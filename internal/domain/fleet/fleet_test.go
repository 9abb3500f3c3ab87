package fleet

import (
	"fmt"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/proof/seed"
)

// state is all that decides which accounts the box takes work of: it is enrolled in home,
// away is the other account, ann may own the box, and bob is somebody else.
type state struct {
	target     string // of the owner
	owner      string // of the target user
	atHome     string // ann's membership there: none, before she has agreed, after that by as much as clocks differ, or later
	atAway     string
	said       string // by whom, and what: nothing, ann asked, ann agreed, bob agreed, ann agreed for home
	letsIn     bool   // the floors of away
	homeLetsIn bool
}

// may is what people were told: a box works for its own account, and for no other without
// a word of its owner's for that one, said as a member of both, and a word of that account's.
func (s state) may(account string) bool {
	switch s.target {
	case "shared":
		return true
	case "org":
		return account == "home"
	}
	ownerAtHome := s.owner == "bob" || s.atHome != "none" // bob is a member of both, always
	if account == "home" {
		return ownerAtHome
	}
	if account == "else" || !s.letsIn {
		return false
	}
	if s.owner == "bob" {
		return s.said == "bob agreed"
	}
	return s.said == "ann agreed" && since(s.atHome) && since(s.atAway)
}

// since tells whether a membership goes back to before ann has agreed, as far as clocks can tell.
func since(when string) bool { return when == "before" || when == "close" }

func states(yield func(state)) {
	when := []string{"none", "before", "close", "later"}
	words := []string{"nothing", "ann asked", "ann agreed", "bob agreed", "ann agreed for home"}
	for i := range 3 * 2 * 4 * 4 * 5 * 2 * 2 {
		pick := func(of int) int { defer func() { i /= of }(); return i % of }
		yield(state{
			target: []string{"shared", "org", "user"}[pick(3)], owner: []string{"ann", "bob"}[pick(2)],
			atHome: when[pick(4)], atAway: when[pick(4)], said: words[pick(5)], letsIn: pick(2) == 1, homeLetsIn: pick(2) == 1,
		})
	}
}

var mayTake = db.Q[bool](`SELECT ` + May + ` FROM boxes b CROSS JOIN (SELECT CAST($2 AS TEXT) AS account_id) w WHERE b.id = $1`)

// set puts the database into a state.
func (s state) set(tx *db.Tx) error {
	owner := &s.owner
	if s.target != "user" {
		owner = nil
	}
	began := map[string]int64{"before": 1, "close": 5 + people.Apart.Microseconds(), "later": 6 + people.Apart.Microseconds()}
	do := []func() error{
		func() error { _, err := seed.LeaveAll.Exec(tx, "ann"); return err },
		func() error { _, err := seed.ForgetAgreed.Exec(tx); return err },
		func() error { _, err := seed.SetTarget.Exec(tx, "box", s.target, owner); return err },
		func() error { _, err := seed.LetIn.Exec(tx, "away", s.letsIn); return err },
		func() error { _, err := seed.LetIn.Exec(tx, "home", s.homeLetsIn); return err },
	}
	for account, when := range map[string]string{"home": s.atHome, "away": s.atAway} {
		if when != "none" {
			do = append(do, func() error { return seed.Member{Account: account, User: "ann", Since: began[when]}.Add(tx) })
		}
	}
	if who, what, ok := strings.Cut(s.said, " "); ok {
		account, at := "away", new(int64)
		if *at = 5; what == "asked" {
			at = nil
		} else if what == "agreed for home" {
			account = "home"
		}
		do = append(do, func() error { return seed.Consent{BoxID: "box", AccountID: account, UserID: who, AgreedAt: at}.Add(tx) })
	}
	for _, one := range do {
		if err := one(); err != nil {
			return err
		}
	}
	return nil
}

// TestWhoMayTakeWhoseWork tries each of the 1,920 states: the condition, the accounts that a
// claim looks at, and what a box may hold say the same, which is what the model says.
func TestWhoMayTakeWhoseWork(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			err := seed.Add(tx,
				seed.Account{ID: "home"}, seed.Account{ID: "away"}, seed.Account{ID: "else"},
				seed.User{ID: "ann"}, seed.User{ID: "bob"},
				seed.Member{Account: "home", User: "bob"}, seed.Member{Account: "away", User: "bob"},
				seed.Member{Account: "else", User: "bob"}, seed.Box{ID: "box", Account: "home"})
			for _, account := range []string{"home", "away", "else"} {
				if err == nil {
					_, err = seed.FillQueue.Exec(tx, account)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		n, works := 0, 0
		states(func(s state) {
			n++
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				if err := s.set(tx); err != nil {
					return err
				}
				served, err := Served(tx, "box", s.target, "home")
				if err != nil {
					return err
				}
				for _, account := range []string{"home", "away", "else"} {
					want := s.may(account)
					may, err := mayTake.One(tx, "box", account)
					if err != nil {
						return err
					}
					right, holds, err := Holding(tx, "box", account)
					if err != nil {
						return err
					}
					looks := false
					for _, one := range served {
						looks = looks || one == account
					}
					if may != want || looks != want || holds != (want || account == "home") {
						return fmt.Errorf("%+v: work of %s: may %t, looks %t, holds %t; want %t", s, account, may, looks, holds, want)
					}
					if holds && account != "home" {
						works++
						consent := s.target == "user"
						named := right.UserID != nil && *right.UserID == s.owner && right.Agreed != nil
						if (right.Kind == Consent) != consent || named != consent {
							return fmt.Errorf("%+v: the right is %+v", s, right)
						}
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
		if n != 1920 || works == 0 {
			t.Errorf("%d states, %d in which it works elsewhere", n, works)
		}
	})
}
