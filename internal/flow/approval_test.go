package flow

import (
	"log/slog"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/notification"
	"yardmaster/internal/event"
	"yardmaster/internal/mail"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

// A person is mailed about at most 30 questions an hour, and the last mail says so. What
// they are not mailed is not counted.
func TestApprovalMailsAreCounted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 8, 0, 0, 0, time.UTC)
	at := now
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return at }}, func(t *testing.T, d *db.DB) {
		at = now
		hub, ring, log := event.NewHub(), seal.New(), slog.New(slog.DiscardHandler)
		wishes := ApprovalWishes{Notifications: notification.New(notification.Needs{
			DB: d, Hub: hub, Ring: ring, Mail: &mail.Outbox{DB: d, Hub: hub, Ring: ring}, BaseURL: "https://yard.example", Logger: log,
			Push: nobody{}, Webhook: nobody{}, Routes: nobody{},
		})}
		write := func(fn func(tx *db.Tx) error) {
			t.Helper()
			if err := d.Write(db.WithAccount(t.Context(), "acme"), fn); err != nil {
				t.Fatal(err)
			}
		}
		write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.User{ID: "ada", Email: "ada@example.com"},
				seed.User{ID: "tom", Email: "tom@example.com"}, seed.Member{Account: "acme", User: "ada", Role: "owner"},
				seed.Member{Account: "acme", User: "tom", Role: "owner"},
				seed.Choice{Account: "acme", User: "tom", Kind: "approval", Channel: "email"})
		})
		ask := func(who string) (wanted, last bool) {
			t.Helper()
			write(func(tx *db.Tx) error {
				w, err := wishes.Mailed(tx, who)
				wanted, last = w.Wanted, len(w.Notes) > 0
				if err == nil && w.Wanted && (w.Unsubscribe == "" || !w.From.Equal(at)) {
					t.Errorf("%+v", w)
				}
				return err
			})
			return wanted, last
		}
		for i := 1; i <= 31; i++ {
			if wanted, last := ask("ada"); wanted != (i <= 30) || last != (i == 30) {
				t.Errorf("question %d: mailed %t, the last %t", i, wanted, last)
			}
			if wanted, _ := ask("tom"); wanted {
				t.Error("tom wants no mails")
			}
		}
		at = at.Add(time.Hour)
		if wanted, last := ask("ada"); !wanted || last {
			t.Errorf("an hour later: mailed %t, the last %t", wanted, last)
		}
	})
}
