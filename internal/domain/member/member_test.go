package member

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/invitation"
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
	mailed = db.Q[string](`SELECT recipient || ': ' || subject FROM mails ORDER BY created_at`)
)

// TestAddedByLogin holds that a person who is added by login gets a mail, that tries
// count whether or not there is such a person, and that nobody leaves the last
// account that they can sign in to.
func TestAddedByLogin(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		s := roster(t, d, limit.New(time.Now))
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Account{ID: "acme"})
			other := seed.Add(tx, seed.Account{ID: "second"})
			err = errors.Join(err, other)
			for _, user := range []string{"ada", "bob@example.com"} {
				failed := seed.Add(tx, seed.User{ID: user, Email: user})
				err = errors.Join(err, failed)
			}
			failed := seed.Add(tx, seed.Member{Account: "acme", User: "ada", Role: "owner"})
			return errors.Join(err, failed)
		})
		if err != nil {
			t.Fatal(err)
		}
		as := func(user string, role policy.Role) context.Context {
			a := policy.Actor{Credential: policy.Session, UserID: user, AccountID: "acme", Role: role}
			return db.WithAccount(policy.With(context.Background(), a), "acme")
		}
		owner := as("ada", policy.Owner)
		if _, err := s.invite(owner, inviteIn{Login: "bob@example.com"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := s.invite(owner, inviteIn{Login: "nobody"}); !fault.IsKind(err, fault.NotFound) {
				t.Errorf("nobody: %v", err)
			}
		}
		for _, login := range []string{"nobody", "ada"} {
			_, err := s.invite(owner, inviteIn{Login: login})
			if f := fault.From(err); err == nil || f.Kind != fault.RateLimited || f.RetryAfter <= 0 {
				t.Errorf("%s, after three tries: %v", login, err)
			}
		}
		if _, err := s.leave(as("bob@example.com", policy.Member),
			leaveIn{Account: "acme"}); !errors.Is(err, fault.Reason("last_account", "")) {
			t.Errorf("the only account: %v", err)
		}
		err = d.Write(t.Context(), func(tx *db.Tx) error {
			if all, err := mailed.All(tx); err != nil || len(all) != 1 || all[0] != "bob@example.com: You were added to acme" {
				t.Errorf("mails %q, %v", all, err)
			}
			err := seed.Add(tx, seed.Member{Account: "second", User: "bob@example.com", Role: "viewer"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		bound := policy.Actor{Credential: policy.Session, UserID: "bob@example.com", AccountID: "second", Role: policy.Viewer, Bound: true}
		if _, err := s.leave(policy.With(context.Background(), bound), leaveIn{Account: "acme"}); !fault.IsKind(err, fault.Forbidden) {
			t.Errorf("a session that is good elsewhere only: %v", err)
		}
		if out, err := s.leave(as("bob@example.com", policy.Member), leaveIn{Account: "acme"}); err != nil || !out.Left {
			t.Errorf("%+v, %v", out, err)
		}
	})
}
