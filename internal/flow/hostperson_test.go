package flow

import (
	"testing"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/seed"
)

// Somebody at a host is a member here if a token or a sign-in says so by the permanent id.
// A login alone bars, and names nobody. Whether two labels are of one person is yes unless
// it is known that they are not.
func TestHostPersons(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		const host = "github:github.com"
		persons := HostPersons{Issuers: map[string]string{host: "https://github.com"}}
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			var rows []seed.Row
			for _, user := range []string{"ada", "bea", "cid", "dan", "eve"} {
				rows = append(rows, seed.User{ID: user})
			}
			return seed.Add(tx, append(rows, seed.Account{ID: "acme"}, seed.Account{ID: "rival"},
				seed.Member{Account: "acme", User: "ada", Role: "owner"}, seed.Member{Account: "acme", User: "bea", Role: "viewer"},
				seed.Member{Account: "acme", User: "cid"}, seed.Member{Account: "rival", User: "dan", Role: "owner"},
				seed.Member{Account: "acme", User: "eve"},
				seed.HostToken{Account: "acme", User: "ada", Host: host, Login: "ada-there", HostID: "1"},
				seed.HostToken{Account: "acme", User: "bea", Host: host, Login: "Bea-There"},
				seed.HostToken{Account: "rival", User: "dan", Host: host, Login: "dan", HostID: "4"},
				seed.Identity{Issuer: "https://github.com", Subject: "3", User: "cid"},
				seed.Identity{Issuer: "https://github.com", Subject: "4", User: "dan"})...)
		})
		if err != nil {
			t.Fatal(err)
		}
		err = d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			s := Signers{Persons: persons}
			for who, want := range map[codehost.User]string{
				{Login: "renamed", ID: "1"}:        "user:ada",
				{Login: "cid", ID: "3"}:            "user:cid",
				{Login: "dan", ID: "4"}:            "", // of another account
				{Login: "ada-there", ID: "9"}:      "", // who has the login now is somebody else
				{Login: "ada-there"}:               "",
				{Login: "bea-there", ID: "2"}:      "barred",
				{Login: "cid", ID: "3", Bot: true}: "",
				{}:                                 "",
			} {
				got, err := s.At(tx, host, who)
				if err != nil {
					return err
				}
				label := got.Label
				if got.Barred {
					label += "barred"
				}
				if label != want {
					t.Errorf("%+v is %q, want %q", who, label, want)
				}
			}
			for _, c := range []struct {
				a, b string
				same bool
			}{
				{"user:ada", "user:ada", true}, {"user:ada", "user:bea", false}, {"code-host:x", "code-host:y", false},
				{"user:ada", "code-host:ada-there", true}, {"code-host:bob", "user:ada", false}, {"user:cid", "code-host:bob", true},
				{"user:eve", "run:1", false}, {"pat:1", "code-host:bob", true},
			} {
				same, err := s.Same(tx, host, c.a, c.b)
				if err != nil {
					return err
				}
				if same != c.same {
					t.Errorf("%s and %s: %v", c.a, c.b, same)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
