package flow

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/grant"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

// gate is the invitations of a database, with the gifts that come along with
// them. Eve owns nothing and waits; acme is an account that is not hers.
type gate struct {
	Invitations
	gifts Gifts
	db    *db.DB
}

func newGate(t *testing.T, d *db.DB) gate {
	t.Helper()
	ring, err := seal.Parse(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	hub := event.NewHub()
	gifts := Gifts{Ledger: grant.Ledger{Hub: hub}}
	g := gate{gifts: gifts, db: d, Invitations: Invitations{Invites: invitation.New(invitation.Needs{
		DB: d, Mail: &mail.Outbox{DB: d, Hub: hub, Ring: ring}, BaseURL: "http://yard", Gifts: gifts,
	})}}
	g.write(t, func(tx *db.Tx) error {
		user := seed.Add(tx, seed.User{ID: "eve", Email: "eve@example.com", Waiting: true})
		return errors.Join(user, seed.Add(tx, seed.Account{ID: "acme"}))
	})
	return g
}

func (g gate) write(t *testing.T, fn func(*db.Tx) error) {
	t.Helper()
	if err := g.db.Write(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

// An address is invited once, for as long as its invitation can be accepted.
func TestInvite(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		in := newGate(t, d)
		gift := grant.Gift{AIDevs: 2, Days: 3, Reason: "Early tester", IssuedBy: "operator:ada"}
		in.write(t, func(tx *db.Tx) error {
			first, fresh, err := in.Invite(tx, "eve@example.com", gift)
			if err != nil || !fresh {
				t.Errorf("the first: fresh %v, %v", fresh, err)
			}
			again, fresh, err := in.Invite(tx, "eve@example.com", gift)
			if err != nil || fresh || again != first {
				t.Errorf("the second: %s after %s, fresh %v, %v", again, first, fresh, err)
			}
			for email, want := range map[string]bool{"eve@example.com": true, "bob@example.com": false} {
				if got, err := in.Invited(tx, email); err != nil || got != want {
					t.Errorf("%s is invited: %v, %v", email, got, err)
				}
			}
			return nil
		})
	})
}

// What an invitation to the platform brings along is booked once, with the reason
// that stands in it; one without a reason came off the waitlist. It leads to no
// account; one to an account leads there.
func TestRedeem(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		in := newGate(t, d)
		redeem := func(o invitation.Offer) (account string) {
			o.Email = "eve@example.com"
			in.write(t, func(tx *db.Tx) error {
				sent, err := in.Invites.Send(tx, o)
				if err == nil {
					account, err = in.Redeem(tx, path.Base(sent.Link), "eve")
				}
				return err
			})
			return account
		}
		if account := redeem(invitation.Offer{Kind: invitation.Platform,
			Bundle: invitation.Bundle{AIDevs: 2, ExpiresInDays: 3, IssuedBy: "operator:ada"}}); account != "" {
			t.Errorf("to the platform: it leads to %q", account)
		}
		if account := redeem(invitation.Offer{Kind: invitation.OrgMember, AccountID: "acme", Role: policy.Member,
			Account: "acme"}); account != "acme" {
			t.Errorf("to acme: it leads to %q", account)
		}
		in.write(t, func(tx *db.Tx) error {
			if given, err := in.gifts.Give(tx, "eve", invitation.Bundle{AIDevs: 5, Reason: "again"}); err != nil || given {
				t.Errorf("a second gift is given: %v, %v", given, err)
			}
			all, err := grant.History(tx, "eve")
			if err != nil || len(all.Data) != 1 {
				t.Fatalf("%+v, %v", all, err)
			}
			g := all.Data[0]
			if g.AIDevs != 2 || g.Reason != "invited off the waitlist" || g.IssuedBy != "operator:ada" || g.ExpiresAt == nil {
				t.Errorf("%+v", g)
			}
			if _, err := in.Redeem(tx, "nothing", "eve"); !fault.IsKind(err, fault.NotFound) {
				t.Errorf("an unknown token: %v", err)
			}
			return nil
		})
	})
}

// TestProvidersAny holds that the page of sign-ins offers a company's own way once
// one account has it.
func TestProvidersAny(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, tx *db.Tx) {
		for _, want := range []bool{false, true} {
			if got, err := (Providers{}).Any(tx); err != nil || got != want {
				t.Errorf("%v, %v, want %v", got, err, want)
			}
			if !want {
				if err := seed.Add(tx, seed.Provider{Account: "acme"}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestProvidersVouch holds which identities are a way back: those of the GitHub that is
// configured, and those of the provider that an account of the user has now.
func TestProvidersVouch(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, tx *db.Tx) {
		if err := errors.Join(seed.Add(tx, seed.Provider{Account: "acme"}, seed.User{ID: "mia"}, seed.User{ID: "rob"},
			seed.Member{Account: "acme", User: "mia", Role: "member"})); err != nil {
			t.Fatal(err)
		}
		for _, x := range []struct {
			github, user, issuer string
			want                 bool
		}{
			{"https://github.com", "mia", "github https://github.com", true},
			{"https://ghe.example", "mia", "github https://github.com", false},
			{"", "mia", "github https://github.com", false},
			{"", "mia", "github ", false},
			{"", "mia", "oidc acme https://idp.example.com", true},
			{"", "rob", "oidc acme https://idp.example.com", false}, // no member any more
			{"", "mia", "oidc acme https://before.example.com", false},
			{"", "mia", "oidc rival https://idp.example.com", false},
			{"https://github.com", "mia", "https://github.com", false},
		} {
			got, err := Providers{GitHub: x.github}.Vouches(tx, x.user, x.issuer)
			if err != nil || got != x.want {
				t.Errorf("%+v: %v, %v", x, got, err)
			}
		}
	})
}

// TestGiftsFollowOwners holds that the queues are woken whose capacity changes when
// an account gets an owner or loses one: its own, and that of the account where what
// the person was given counts now. They are woken after the commit.
func TestGiftsFollowOwners(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		in := newGate(t, d)
		in.write(t, func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "home"}, seed.Account{ID: "other"},
				seed.Member{Account: "home", User: "eve", Role: "owner"})
		})
		hub := in.gifts.Ledger.Hub
		woken := map[string]<-chan struct{}{}
		for _, account := range []string{"acme", "home", "other", ""} {
			woken[account] = hub.Watch(event.QueueTopic(account))
		}
		is := func(account string) bool {
			select {
			case <-woken[account]:
				return true
			default:
				return false
			}
		}
		in.write(t, func(tx *db.Tx) error {
			err := in.gifts.OwnersChanged(tx, invitation.Owner{AccountID: "acme", UserID: "eve"})
			if is("acme") || is("home") || is("") {
				t.Error("a queue is woken before the commit")
			}
			return err
		})
		for account, want := range map[string]bool{"acme": true, "home": true, "": true, "other": false} {
			if is(account) != want {
				t.Errorf("the queue of %q is woken: %v", account, is(account))
			}
		}
	})
}
