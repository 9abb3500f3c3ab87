package signin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/fault"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

// as is the context of a call by a session.
func (d *server) as(p Presented) context.Context {
	d.t.Helper()
	a, err := d.who(p)
	if err != nil {
		d.t.Fatal(err)
	}
	return db.WithAccount(policy.With(context.Background(), a), a.AccountID)
}

// without takes ada's password away.
func (d *server) without() {
	d.write(func(tx *db.Tx) error {
		_, err := people.SetPassword(tx, "ada", "", true)
		return err
	})
}

// TestWaysBack holds that a way back is one that the person can go: a code to an address
// that they have, from a server that mails, and a provider that is asked still.
func TestWaysBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		ctx := d.as(Presented{Session: d.cookie()})
		d.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.User{ID: "bob", Email: seed.None, Password: seal.Password(password)})
		})
		want := func(when, want string) {
			t.Helper()
			b, err := d.waysBack(ctx, struct{}{})
			if got := fmt.Sprint(b.Password, b.Email, b.Provider); err != nil || got != want {
				t.Errorf("%s: %s, want %s; %v", when, got, want, err)
			}
		}
		want("no mail leaves", "true false false")
		d.Mailed = true
		want("mail leaves", "true true false")
		if b, err := d.back(ctx, "bob"); err != nil || !b.Password || b.Email {
			t.Errorf("without an address: %+v, %v", b, err)
		}
		d.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Identity{Issuer: "removed", Subject: "1", User: "ada"})
		})
		want("a provider of before", "true true false")
		d.write(func(tx *db.Tx) error { return seed.Add(tx, seed.Identity{Issuer: asked, Subject: "1", User: "ada"}) })
		want("a provider", "true true true")
		d.without()
		want("no password", "false true true")
	})
}

// TestWhoSetsNoPassword holds that a session that sets no password is told so before it is
// asked for one, by the same word as it is refused with.
func TestWhoSetsNoPassword(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		bound := ""
		d.write(func(tx *db.Tx) error {
			set, err := open(tx, "ada", "acme", new("acme"), false)
			bound, _, _ = strings.Cut(strings.TrimPrefix(set, Cookie(false)+"="), ";")
			return err
		})
		own := Presented{Session: d.cookie()}
		want := func(when string, p Presented, now, slug string) {
			t.Helper()
			ctx := d.as(p)
			b, err := d.waysBack(ctx, struct{}{})
			if err != nil || slug == "" && b.Refused != nil || slug != "" && (b.Refused == nil || *b.Refused != slug) {
				t.Errorf("%s: auth.ways says %v, %v, want %q", when, b.Refused, err, slug)
			}
			page, err := d.passwordForm(ctx, passwordFormIn{ReturnTo: "/ui/"})
			html := fmt.Sprint(page.Body)
			if err != nil || strings.Contains(html, `action="/auth/password/set"`) != (slug == "") ||
				!strings.Contains(html, noPassword[slug]) {
				t.Errorf("%s: the form is %s, %v", when, html, err)
			}
			_, err = d.setPassword(ctx, setPasswordIn{Now: now, Password: "a longer password"})
			var refused *fault.Error
			switch {
			case slug == "" && err != nil, slug != "" && (!errors.As(err, &refused) || refused.Slug != slug):
				t.Errorf("%s: %v, want %q", when, err, slug)
			}
		}
		want("bound", Presented{Session: bound}, password, boundSession)
		d.pass(time.Hour + time.Minute)
		want("who has one", own, password, "")
		d.without()
		own = Presented{Session: d.cookie()}
		want("the first one, at once", own, "", "")
		d.without()
		own = Presented{Session: d.cookie()}
		d.pass(time.Hour + time.Minute)
		want("the first one, too late", own, "", oldSession)
	})
}

// TestStrangersLeaveAPlace holds that whoever signs in from where they have signed in before is
// checked at once, however many strangers wait to be.
func TestStrangersLeaveAPlace(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		if r := d.tryAs(address(1), "ada", rightPassword); r.status != 200 {
			t.Fatalf("%+v", r)
		}
		end := make(chan struct{})
		defer close(end)
		for range checksAtOnce + checksQueued {
			go func() { _ = d.checks.run(context.Background(), true, func() { <-end }) }()
		}
		patience.Until(t, "strangers have all places", func() bool { return len(d.checks.strangers) == cap(d.checks.strangers) })
		if r := d.tryAs(address(2), "ada", rightPassword); r.status != 429 {
			t.Errorf("from elsewhere: %+v", r)
		}
		if r := d.tryAs(address(1), "ada", rightPassword); r.status != 200 {
			t.Errorf("from the address of before: %+v", r)
		}
	})
}

// TestPasswordsAreHashedInTurn holds that a password is hashed where passwords are checked,
// few at once, and none that would be refused.
func TestPasswordsAreHashedInTurn(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		d.without()
		old := Presented{Session: d.cookie()}
		d.pass(time.Hour + time.Minute)
		fresh := Presented{Session: d.cookie()}
		if err := d.checks.run(context.Background(), false, func() {}); err != nil {
			t.Fatal(err)
		}
		end := make(chan struct{})
		defer close(end)
		for range checksAtOnce + checksOwn {
			go func() { _ = d.checks.run(context.Background(), false, func() { <-end }) }()
		}
		patience.Until(t, "all are busy", func() bool { return len(d.checks.own) == cap(d.checks.own) })
		set := func(p Presented) error {
			_, err := d.setPassword(d.as(p), setPasswordIn{Password: "a longer password"})
			return err
		}
		if err := set(fresh); !fault.IsKind(err, fault.RateLimited) {
			t.Errorf("beside %d others: %v", checksAtOnce+checksOwn, err)
		}
		if err := set(old); !fault.IsKind(err, fault.Forbidden) {
			t.Errorf("too late: %v", err)
		}
	})
}
