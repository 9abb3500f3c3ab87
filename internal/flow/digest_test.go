package flow

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/digest"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/mail"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

// nobody is a channel that leads nowhere.
type nobody struct{}

// Deliver implements notification.Channel.
func (nobody) Deliver(*db.Tx, notification.Message) error { return nil }

// mailbox keeps what was sent.
type mailbox struct{ got []mail.Letter }

// Send implements mail.Transport.
func (b *mailbox) Send(_ context.Context, l mail.Letter) error {
	b.got = append(b.got, l)
	return nil
}

// A digest is mailed to the members who have an address and want it, when they want it,
// and to nobody else.
func TestDigestMails(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 8, 0, 0, 0, time.UTC)
	var box mailbox
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return at }}, func(t *testing.T, d *db.DB) {
		box.got = nil
		hub, ring := event.NewHub(), seal.New()
		out := &mail.Outbox{DB: d, Hub: hub, Ring: ring, Transport: &box, From: "yard@example.com", Logger: slog.New(slog.DiscardHandler),
			Hears: people.Hears}
		notes := notification.New(notification.Needs{
			DB: d, Hub: hub, Ring: ring, Mail: out, BaseURL: "https://yard.example", Logger: out.Logger, Push: nobody{}, Webhook: nobody{},
			Routes: nobody{},
		})
		err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "rival"},
				seed.User{ID: "ada", Email: "ada@example.com"}, seed.User{ID: "bob", Email: "bob@example.com", Waiting: true},
				seed.User{ID: "eve", Email: "eve@example.com"}, seed.User{ID: "tom", Email: "tom@example.com"},
				seed.Member{Account: "acme", User: "ada", Role: "viewer"}, seed.Member{Account: "acme", User: "bob", Role: "owner"},
				seed.Member{Account: "acme", User: "tom", Role: "owner"}, seed.Member{Account: "rival", User: "eve", Role: "owner"},
				seed.Choice{Account: "acme", User: "tom", Kind: "digest", Channel: "email"}); err != nil {
				return err
			}
			return DigestMails{Outbox: out, Notifications: notes}.Mail(tx, digest.Letter{
				DigestID: "d", Kind: digest.Daily, Subject: "s", Text: "t", HTML: "<p>h",
			})
		})
		if err == nil {
			err = out.Pass(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(box.got) != 1 {
			t.Fatalf("%+v", box.got)
		}
		l := box.got[0]
		if l.To != "ada@example.com" || l.Subject != "s" || l.Text != "t" || l.HTML != "<p>h" ||
			!strings.HasPrefix(l.Unsubscribe, "https://yard.example/unsubscribe?token=") || l.List != "digest" {
			t.Errorf("%+v", l)
		}
	})
}
