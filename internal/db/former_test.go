package db_test

import (
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

var (
	wentAway = db.S(`INSERT INTO audit (id, account_id, at, actor, kind, object, seq, hash, prev_hash, data)
		VALUES ($1, $2, $3, 'system', $4, $5, $3, '', '', '{}')`)
	formerMembers = db.Q[string](`SELECT account_id || ' ' || user_id FROM former_members ORDER BY 1`)
)

// Who left before there was a table of those is in it, by the record: not who came back, and
// of an account that they were in.
func TestFormerMembersOfTheRecord(t *testing.T) {
	again(t, "0212_former_members.sql", func(text string) (string, bool) {
		_, fill, ok := strings.Cut(text, "INSERT INTO") // the table exists already
		return "INSERT INTO" + fill, ok
	}, func(tx *db.Tx) error {
		if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"}, seed.User{ID: "ada"}, seed.User{ID: "bob"},
			seed.User{ID: "cleo"}, seed.User{ID: "dan"}, seed.Member{Account: "acme", User: "cleo"}); err != nil {
			return err
		}
		for i, r := range [][3]string{
			{"acme", "org_member.removed", "ada"}, {"acme", "org_member.removed", "ada"}, {"acme", "org_member.left", "bob"},
			{"acme", "org_member.left", "cleo"}, {"acme", "org_member.added", "dan"}, {"rival", "org_member.left", "bob"},
			{"acme", "org_member.left", "nobody"},
		} {
			if _, err := wentAway.Exec(tx, r[0]+string(rune('a'+i)), r[0], 10+i, r[1], r[2]); err != nil {
				return err
			}
		}
		return nil
	}, func(tx *db.Tx) error {
		got, err := formerMembers.All(tx)
		if want := []string{"acme ada", "acme bob", "rival bob"}; !slices.Equal(got, want) {
			t.Errorf("%q left, not %q", got, want)
		}
		return err
	})
}
