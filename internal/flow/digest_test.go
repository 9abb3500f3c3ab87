package flow

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/digest"
	"yardmaster/internal/event"
	"yardmaster/internal/mail"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

var mailed = db.Q[string](`SELECT recipient || ': ' || subject FROM mails ORDER BY recipient`)

// A digest is mailed to the members who have an address, and to nobody else.
func TestDigestMails(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		mails := DigestMails{Outbox: &mail.Outbox{DB: d, Hub: event.NewHub(), Ring: seal.New()}}
		err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"},
				seed.User{ID: "ada", Email: "ada@example.com"}, seed.User{ID: "bob", Email: "bob@example.com", Waiting: true},
				seed.User{ID: "eve", Email: "eve@example.com"},
				seed.Member{Account: "acme", User: "ada", Role: "viewer"}, seed.Member{Account: "acme", User: "bob", Role: "owner"},
				seed.Member{Account: "rival", User: "eve", Role: "owner"}); err != nil {
				return err
			}
			if err := mails.Mail(tx, digest.Letter{DigestID: "d", Kind: digest.Daily, Subject: "s", Text: "t", HTML: "h"}); err != nil {
				return err
			}
			got, err := mailed.All(tx)
			if len(got) != 1 || got[0] != "ada@example.com: s" {
				t.Errorf("%v", got)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
