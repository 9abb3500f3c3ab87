package member

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/invitation"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// roster returns a Service on d. An account adds three people a minute by login.
func roster(t *testing.T, d *db.DB, counts limit.Limiter) *Service {
	ring, err := seal.Parse(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	out := &mail.Outbox{DB: d, Hub: event.NewHub(), Ring: ring}
	invites := invitation.New(invitation.Needs{DB: d, Mail: out, BaseURL: "http://yard", Gifts: noGifts{}})
	return New(Needs{DB: d, Invites: invites, BaseURL: "http://yard", Mail: out, Tries: three{counts}})
}

// three allows three tries a minute.
type three struct{ limit.Limiter }

func (n three) Take(account string) (after time.Duration, ok bool) {
	state, ok := n.Limiter.Take(limit.Bucket{Name: "added", Who: account}, 3)
	return time.Duration(state.Reset) * time.Second, ok
}

// noGifts is a Gifts that books nothing.
type noGifts struct{}

func (noGifts) Give(*db.Tx, string, invitation.Bundle) (bool, error) { return false, nil }

// TestSomebodyStaysOwner holds that one owner remains when two owners give up the
// role, or take it from each other, at the same moment.
func TestSomebodyStaysOwner(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := roster(t, d, limit.New(time.Now))
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Account{ID: "acme"})
			for _, user := range []string{"ada", "bob"} {
				failed := seed.Add(tx, seed.User{ID: user, Email: user})
				other := seed.Add(tx, seed.Member{Account: "acme", User: user, Role: "owner"})
				err = errors.Join(err, failed, other)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		as := func(user string) context.Context {
			a := policy.Actor{Credential: policy.PAT, UserID: user, AccountID: "acme", Role: policy.Owner}
			return db.WithAccount(policy.With(context.Background(), a), "acme")
		}
		errs := make([]error, 2)
		var both sync.WaitGroup
		both.Go(func() { _, errs[0] = s.setRole(as("ada"), setRoleIn{UserID: "bob", Role: policy.Member}) })
		both.Go(func() { _, errs[1] = s.remove(as("bob"), memberIn{UserID: "ada"}) })
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("%v, %v: one and only one may succeed", errs[0], errs[1])
		}
		if err := errors.Join(errs...); !errors.Is(err, fault.Reason("last_owner", "")) {
			t.Error(err)
		}
	})
}

var (
	mailed   = db.Q[string](`SELECT recipient || ': ' || subject FROM mails ORDER BY created_at`)
	recorded = db.Q[string](`SELECT kind || data FROM audit WHERE account_id = 'acme' ORDER BY id`)
)

var digits = regexp.MustCompile(`\d+`)

// masked returns a text without the digits of its times.
func masked(s string) string { return digits.ReplaceAllString(s, "0") }

// TestAddedByLogin holds that nobody is made a member by login who has not allowed it:
// they get an invitation and a mail, and accept. A login that nobody has gets the same
// answer, the same rows and the same events; tries count for both. Nobody leaves the last
// account that they can sign in to.
func TestAddedByLogin(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := roster(t, d, limit.New(time.Now))
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "second"}, seed.User{ID: "ada"}, seed.User{ID: "bob"},
				seed.User{ID: "eve"}, seed.Member{Account: "acme", User: "ada", Role: "owner"})
		})
		if err != nil {
			t.Fatal(err)
		}
		as := func(user string, role policy.Role) context.Context {
			a := policy.Actor{Credential: policy.Session, UserID: user, AccountID: "acme", Role: role}
			return db.WithAccount(policy.With(context.Background(), a), "acme")
		}
		owner := as("ada", policy.Owner)
		answers := map[string]string{}
		for _, login := range []string{"bob", "nobody"} {
			out, err := s.invite(owner, inviteIn{Login: login})
			if err != nil {
				t.Fatal(err)
			}
			whole, err := json.Marshal(out)
			if err != nil {
				t.Fatal(err)
			}
			answers[login] = masked(strings.NewReplacer(login, "LOGIN", out.Invitation.ID, "ID").Replace(string(whole)))
		}
		if answers["bob"] != answers["nobody"] || !strings.Contains(answers["bob"], `"kind":"invited","member":null`) {
			t.Errorf("somebody: %s\nnobody:   %s", answers["bob"], answers["nobody"])
		}
		err = d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			listed, err := invitation.Of(tx, op.PageIn{PerPage: 9})
			if err != nil || len(listed) != 2 || listed[0].Email != nil || listed[1].Email != nil {
				t.Errorf("invitations %+v, %v", listed, err)
			}
			trail, failed := recorded.All(tx)
			if len(trail) != 2 || masked(trail[0]) != strings.ReplaceAll(masked(trail[1]), "nobody", "bob") {
				t.Errorf("the record says %q", trail)
			}
			all, unread := mailed.All(tx)
			if len(all) != 1 || !strings.HasSuffix(all[0], ": An invitation to acme on Yardmaster") {
				t.Errorf("mails %q", all)
			}
			_, member, lost := people.Role(tx, "acme", "bob")
			if member {
				t.Error("bob is a member, and has not accepted")
			}
			_, wrong := people.SetAddedAtOnce(tx, "eve", true)
			return errors.Join(failed, unread, lost, wrong)
		})
		if err != nil {
			t.Fatal(err)
		}
		if out, err := s.invite(owner, inviteIn{Login: "Eve"}); err != nil || out.Kind != "added" || out.Member.UserID != "eve" {
			t.Errorf("who allows it: %+v, %v", out, err)
		}
		for _, login := range []string{"nobody", "ada"} {
			_, err := s.invite(owner, inviteIn{Login: login})
			if f := fault.From(err); err == nil || f.Kind != fault.RateLimited || f.RetryAfter <= 0 {
				t.Errorf("%s, after three tries: %v", login, err)
			}
		}
		if _, err := s.leave(as("eve", policy.Member), leaveIn{Account: "acme"}); !errors.Is(err, fault.Reason("last_account", "")) {
			t.Errorf("the only account: %v", err)
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error {
			return seed.Add(tx, seed.Member{Account: "second", User: "eve", Role: "viewer"})
		})
		if err != nil {
			t.Fatal(err)
		}
		bound := policy.Actor{Credential: policy.Session, UserID: "eve", AccountID: "second", Role: policy.Viewer, Bound: true}
		if _, err := s.leave(policy.With(context.Background(), bound), leaveIn{Account: "acme"}); !fault.IsKind(err, fault.Forbidden) {
			t.Errorf("a session that is good elsewhere only: %v", err)
		}
		if out, err := s.leave(as("eve", policy.Member), leaveIn{Account: "acme"}); err != nil || !out.Left {
			t.Errorf("%+v, %v", out, err)
		}
	})
}

// TestWhoIsGoneStaysOut holds that what invited a person does not let them in again once they
// were a member by another way and are none any more.
func TestWhoIsGoneStaysOut(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := roster(t, d, limit.New(time.Now))
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "second"}, seed.User{ID: "ada"},
				seed.User{ID: "bob", Email: "bob@example.com"}, seed.Member{Account: "acme", User: "ada", Role: "owner"},
				seed.Member{Account: "second", User: "bob", Role: "viewer"})
		})
		if err != nil {
			t.Fatal(err)
		}
		owner := policy.Actor{Credential: policy.Session, UserID: "ada", AccountID: "acme", Role: policy.Owner}
		bob := policy.Actor{Credential: policy.Session, UserID: "bob", AccountID: "acme", Role: policy.Member}
		as := func(a policy.Actor) context.Context {
			return db.WithAccount(policy.With(context.Background(), a), "acme")
		}
		for name, end := range map[string]func() error{
			"removed": func() error { _, err := s.remove(as(owner), memberIn{UserID: "bob"}); return err },
			"left":    func() error { _, err := s.leave(as(bob), leaveIn{Account: "acme"}); return err },
		} {
			for _, in := range []inviteIn{{Login: "bob", Role: policy.Admin}, {Email: "Bob@example.com", Role: policy.Admin}} {
				if _, err := s.invite(as(owner), in); err != nil {
					t.Fatal(err)
				}
			}
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				_, err := people.Join(tx, "acme", "bob", policy.Viewer)
				return err
			})
			if err = errors.Join(err, end()); err != nil {
				t.Fatal(name, err)
			}
			err = d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
				listed, err := invitation.Of(tx, op.PageIn{PerPage: 9})
				for _, one := range listed {
					if one.Status != invitation.Revoked {
						t.Errorf("%s: %+v", name, one)
					}
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
