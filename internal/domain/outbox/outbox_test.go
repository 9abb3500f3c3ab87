package outbox

import (
	"context"
	"log/slog"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/seal"
)

// taken has the ids of the mails that a server has taken.
type taken []string

// Send implements mail.Transport.
func (t *taken) Send(_ context.Context, l mail.Letter) error {
	*t = append(*t, l.ID)
	return nil
}

// A mail that has arrived is not sent again.
func TestSentMailStays(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		var there taken
		box := &mail.Outbox{DB: d, Hub: event.NewHub(), Ring: seal.New(), Transport: &there, From: "Yard <yard@example.com>",
			Logger: slog.New(slog.DiscardHandler)}
		if err := d.Write(t.Context(), func(tx *db.Tx) error {
			return box.Post(tx, mail.Message{To: "bob@example.com", Subject: "Hello", Text: "Hello."})
		}); err != nil {
			t.Fatal(err)
		}
		if err := box.Pass(t.Context()); err != nil || len(there) != 1 {
			t.Fatal(there, err)
		}
		if _, err := New(Needs{DB: d, Mail: box}).retry(t.Context(), idIn{ID: there[0]}); fault.From(err).Slug != "mail-sent" {
			t.Error(err)
		}
	})
}
