package signin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

var (
	resetMails  = db.Q[int64](`SELECT COUNT(*) FROM mails WHERE subject = 'A new password' AND recipient = $1`)
	expireLinks = db.S(`UPDATE password_links SET expires_at = $1`)
)

// TestForgottenPassword holds that a link to a new password is mailed to who is known, a few
// at a time, and answered alike for everybody; that it sets the password once, within its
// time, and that all sessions of the person, and other links, end with it.
func TestForgottenPassword(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		d.write(func(tx *db.Tx) error { return seed.Add(tx, seed.User{ID: "zoe", Email: "zoe@example.com"}) })
		for range resetsAtOnce + 2 {
			for _, email := range []string{"Zoe@example.com", "nobody@example.com"} {
				r, err := d.forgotten(t.Context(), forgottenIn{Email: email})
				if err != nil || r.Status != 202 {
					t.Fatalf("%s: %+v, %v", email, r, err)
				}
			}
		}
		d.write(func(tx *db.Tx) error {
			known, err := resetMails.One(tx, "zoe@example.com")
			unknown, failed := resetMails.One(tx, "nobody@example.com")
			if known != resetsAtOnce || unknown != 0 {
				t.Errorf("%d mails to who is known, %d to nobody", known, unknown)
			}
			return errors.Join(err, failed)
		})
		operator := func(kind policy.Credential, since time.Duration) context.Context {
			var at time.Time
			d.write(func(tx *db.Tx) error { at = tx.Now.Add(-since); return nil })
			return policy.With(t.Context(), policy.Actor{Credential: kind, UserID: "root", SignedInAt: at})
		}
		fresh := operator(policy.Session, time.Minute)
		link := func() string {
			t.Helper()
			out, err := d.passwordLink(fresh, userIn{UserID: "ada"})
			if err != nil {
				t.Fatal(err)
			}
			return out.Link[strings.LastIndex(out.Link, "/")+1:]
		}
		session, second := d.cookie(), d.cookie()
		before, now := link(), link()
		const other = "another password of ada"
		try := func(token string) error {
			_, err := d.reset(t.Context(), resetIn{Token: token, Password: other})
			return err
		}
		for _, token := range []string{before, "", "dev_sin_x", seal.Hash(now)} {
			if err := try(token); !fault.IsKind(err, fault.Gone) {
				t.Errorf("with %q: %v", token, err)
			}
		}
		if _, err := d.resetPage(t.Context(), linkIn{Token: now}); err != nil {
			t.Errorf("the page: %v", err)
		}
		if err := try(now); err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{session, second} {
			if _, err := d.who(Presented{Session: s}); err == nil {
				t.Error("a session outlives the password")
			}
		}
		if err := d.checkPassword(t.Context(), "ada", other); err != nil {
			t.Errorf("the new password: %v", err)
		}
		if err := try(now); !fault.IsKind(err, fault.Gone) {
			t.Errorf("twice: %v", err)
		}
		old := link()
		ctx := d.as(Presented{Session: d.cookie()})
		if _, err := d.setPassword(ctx, setPasswordIn{Now: other, Password: password}); err != nil {
			t.Fatal(err)
		}
		if err := try(old); !fault.IsKind(err, fault.Gone) {
			t.Errorf("after the person has set one: %v", err)
		}
		late := link()
		d.write(func(tx *db.Tx) error {
			_, err := expireLinks.Exec(tx, db.Micros(tx.Now.Add(-time.Second)))
			return err
		})
		if err := try(late); !fault.IsKind(err, fault.Gone) {
			t.Errorf("too late: %v", err)
		}
		if _, err := d.passwordLink(fresh, userIn{UserID: "nobody"}); !fault.IsKind(err, fault.NotFound) {
			t.Errorf("of nobody: %v", err)
		}
		// Whoever has a link can become the person, so no token makes one, and none is of an operator.
		for name, by := range map[string]context.Context{
			"a token": operator(policy.Operator, 0), "a personal token": operator(policy.PAT, 0),
			"an old session": operator(policy.Session, 2*time.Hour),
		} {
			if _, err := d.passwordLink(by, userIn{UserID: "ada"}); !fault.IsKind(err, fault.Forbidden) {
				t.Errorf("by %s: %v", name, err)
			}
		}
		d.write(func(tx *db.Tx) error { return seed.Add(tx, seed.User{ID: "root", Operator: true}) })
		if _, err := d.passwordLink(fresh, userIn{UserID: "root"}); fault.From(err).Slug != "is-operator" {
			t.Errorf("of an operator: %v", err)
		}
	})
}
