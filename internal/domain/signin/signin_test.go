package signin

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/token"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

const password = "a long password"

var (
	seenAt = db.Q[int64](`SELECT last_seen_at FROM signins`)
)

// server is the sign-in of a server on which ada owns acme and is a viewer of second.
// There is no other user.
type server struct {
	*Service
	t     *testing.T
	clock *atomic.Int64 // microseconds
}

// uninvited has no invitations.
type uninvited struct{}

func (uninvited) Invited(*db.Tx, string) (bool, error) { return false, nil }
func (uninvited) Redeem(*db.Tx, string, string) (accountID string, err error) {
	return "", fault.Missing("invitation")
}

// noProviders has no account with an identity provider, and asks one issuer.
type noProviders struct{}

const asked = "an issuer"

func (noProviders) Any(*db.Tx) (bool, error) { return false, nil }

func (noProviders) Vouches(_ *db.Tx, userID, issuer string) (bool, error) {
	return userID == "ada" && issuer == asked, nil
}

func onBoth(t *testing.T, fn func(*testing.T, *server)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			fn(t, newServer(t, dbtest.DSN(t, e), true))
		})
	}
}

// newServer opens a database. With fill it adds the user and the accounts.
func newServer(t *testing.T, dsn string, fill bool) *server {
	d := &server{t: t, clock: new(atomic.Int64)}
	d.clock.Store(time.Unix(1_800_000_000, 0).UnixMicro())
	now := func() time.Time { return time.UnixMicro(d.clock.Load()) }
	ring, err := seal.Parse(strings.Repeat("ab", 32))
	if err != nil {
		t.Fatal(err)
	}
	at := dbtest.Open(t, dsn, db.Options{Clock: now})
	d.Service = New(Needs{
		DB:          at,
		Clock:       now,
		Ring:        ring,
		Mail:        &mail.Outbox{DB: at, Hub: event.NewHub(), Ring: ring},
		Invitations: uninvited{},
		Providers:   noProviders{},
	})
	if !fill {
		return d
	}
	d.write(func(tx *db.Tx) error {
		err := seed.Add(tx, seed.User{ID: "ada", Password: seal.Password(password)})
		for i, account := range []string{"acme", "second", "rival"} {
			failed := seed.Add(tx, seed.Account{ID: account})
			err = errors.Join(err, failed)
			if role := []policy.Role{policy.Owner, policy.Viewer, ""}[i]; role != "" {
				failed = seed.Add(tx, seed.Member{Account: account, User: "ada", Role: string(role), Since: int64(i)})
				err = errors.Join(err, failed)
			}
		}
		return err
	})
	return d
}

func (d *server) write(fn func(*db.Tx) error) {
	d.t.Helper()
	if err := d.DB.Write(context.Background(), fn); err != nil {
		d.t.Fatal(err)
	}
}

func (d *server) pass(by time.Duration) { d.clock.Add(by.Microseconds()) }

// cookie opens a session and returns its secret.
func (d *server) cookie() (secret string) {
	d.t.Helper()
	d.write(func(tx *db.Tx) error {
		set, err := d.Open(tx, "ada", "acme", false)
		secret, _, _ = strings.Cut(strings.TrimPrefix(set, Cookie(false)+"="), ";")
		return err
	})
	return secret
}

func (d *server) who(p Presented) (policy.Actor, error) {
	return d.Authenticate(context.Background(), p)
}

func (d *server) wantKind(p Presented, k fault.Kind) {
	d.t.Helper()
	if a, err := d.who(p); !fault.IsKind(err, k) {
		d.t.Errorf("%+v: %+v, %v, want %v", p, a, err, k)
	}
}

// TestSessionsLive holds that a session ends after Idle if it is not used, and after
// Absolute in any case.
func TestSessionsLive(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		used := Presented{Session: d.cookie()}
		for at := time.Duration(0); at < Idle+time.Hour; at += 30 * time.Hour {
			// Two requests within a minute, over and over, like a page that polls.
			for range 3 {
				if _, err := d.who(used); err != nil {
					t.Fatalf("after %s: %v", at, err)
				}
				d.pass(50 * time.Second)
			}
			d.seen()
			d.pass(30 * time.Hour)
		}
		idle := Presented{Session: d.cookie()}
		d.pass(Idle + time.Second)
		d.wantKind(idle, fault.Unauthenticated)
		d.wantKind(used, fault.Unauthenticated)
	})
}

// seen waits until the use of the only session within the last minutes is recorded,
// which happens beside the request.
func (d *server) seen() {
	d.t.Helper()
	var at, now time.Time
	if !patience.Come(d.t, func() bool {
		d.write(func(tx *db.Tx) error {
			n, err := seenAt.One(tx)
			at, now = db.Time(n), tx.Now
			return err
		})
		return now.Sub(at) < 2*time.Minute
	}) {
		d.t.Fatalf("last seen at %s, and it is %s", at, now)
	}
}

func TestChosenAccountIsForgotten(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		secret := d.cookie()
		for _, acct := range []string{"", "second"} {
			a, err := d.who(Presented{Session: secret, Account: acct})
			if err != nil || acct != "" && (a.AccountID != acct || a.Role != policy.Viewer ||
				a.Scopes.Has(policy.Scopes(policy.WriteTasks))) {
				t.Fatalf("as %q: %+v, %v", acct, a, err)
			}
		}
		d.wantKind(Presented{Session: secret, Account: "rival"}, fault.Forbidden)
		d.wantKind(Presented{Session: secret, Account: "nobody"}, fault.Forbidden)

		a, err := d.who(Presented{Session: secret})
		if err != nil {
			t.Fatal(err)
		}
		ctx := db.WithAccount(policy.With(context.Background(), a), a.AccountID)
		if _, err := d.logout(ctx, logoutIn{}); err != nil {
			t.Fatal(err)
		}
		for _, acct := range []string{"", "second"} { // at once, cached or not
			d.wantKind(Presented{Session: secret, Account: acct}, fault.Unauthenticated)
		}
	})
}

func TestTokens(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		var owner, machine, operator, former string
		d.write(func(tx *db.Tx) error {
			tx.Account = "acme"
			err := seed.Add(tx, seed.User{ID: "root", Password: ""})
			other := seed.Add(tx, seed.Member{Account: "acme", User: "root", Role: string(policy.Owner), Since: int64(9)})
			_, third := seed.SetAdmin.Exec(tx, "root")
			if err := errors.Join(err, other, third); err != nil {
				return err
			}
			later := tx.Now.Add(time.Hour)
			everything := policy.Owner.Ceiling() | policy.PlatformRead | policy.OperatorOnly
			for _, m := range []struct {
				into *string
				kind policy.Credential
				user string
			}{
				{&owner, policy.PAT, "ada"},
				{&machine, policy.PAT, ""},
				{&operator, policy.Operator, "root"},
				{&former, policy.Operator, "ada"},
			} {
				made, err := token.Mint(tx, m.kind, m.user, nil, everything, &later)
				if err != nil {
					return err
				}
				*m.into = made.Token
			}
			return nil
		})
		a, err := d.who(Presented{Bearer: owner})
		if err != nil || a.Scopes != policy.Owner.Ceiling() || a.UserID != "ada" || a.AccountID != "acme" {
			t.Errorf("the owner's token: %+v, %v", a, err)
		}
		if a, err = d.who(Presented{Bearer: operator}); err != nil || !a.Scopes.Has(policy.OperatorOnly) {
			t.Errorf("the operator's token: %+v, %v", a, err)
		}
		if a, err = d.who(Presented{Bearer: former}); err != nil || a.Scopes&policy.OperatorOnly != 0 {
			t.Errorf("the operator token of who is no operator any more: %+v, %v", a, err)
		}
		if a, err = d.who(Presented{Bearer: owner, Account: "second"}); err != nil || a.AccountID != "acme" {
			t.Errorf("a token acts in one account for life: %+v, %v", a, err)
		}
		for name, bearer := range map[string]string{
			"garbage": "x",
			"unknown": "dev_pat_" + strings.Repeat("0", 49),
			"cut":     owner[:len(owner)-1],
			"a hash":  seal.Hash(owner),
		} {
			if _, err := d.who(Presented{Bearer: bearer}); !fault.IsKind(err, fault.Unauthenticated) {
				t.Errorf("%s: %v", name, err)
			}
		}
		d.write(func(tx *db.Tx) error {
			_, err := seed.DropMember.Exec(tx, "acme", "ada")
			return err
		})
		d.pass(fresh)
		d.wantKind(Presented{Bearer: owner}, fault.Unauthenticated)
		d.wantKind(Presented{Bearer: former}, fault.Unauthenticated)
		if _, err := d.who(Presented{Bearer: machine}); err != nil {
			t.Errorf("a machine's token has no member to lose: %v", err)
		}
	})
}

func (d *server) signIn(site, login, pw string) int {
	h := rest.Handler(rest.Config{}, d.Ops())
	req := httptest.NewRequest("POST", "/auth/password", strings.NewReader("login="+login+"&password="+pw))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if site != "" {
		req.Header.Set("Sec-Fetch-Site", site)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if (w.Code == http.StatusOK) != (w.Header().Get("Set-Cookie") != "") {
		d.t.Errorf("%d with the cookie %q", w.Code, w.Header().Get("Set-Cookie"))
	}
	return w.Code
}

func TestPasswordFromAnotherSite(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		for site, want := range map[string]int{"": 200, "none": 200, "same-origin": 200, "same-site": 403, "cross-site": 403} {
			if got := d.signIn(site, "ada", "a+long+password"); got != want {
				t.Errorf("from %q: %d, want %d", site, got, want)
			}
		}
	})
}

// TestFloodOfSignIns holds that only a few passwords are checked at once, and that
// callers are refused when the queue is full.
func TestFloodOfSignIns(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *server) {
		d.checks.once.Do(func() {
			d.checks.running, d.checks.turns = make(chan struct{}, 1), make(chan struct{}, 1)
			d.checks.strangers, d.checks.own = make(chan struct{}, 3), make(chan struct{}, 1)
		})
		d.checks.running <- struct{}{} // a check that does not end
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if _, err := d.checks.match(ctx, true, "", "x"); !errors.Is(err, context.Canceled) {
					t.Errorf("who waited and left: %v", err)
				}
			})
		}
		patience.Until(t, "three wait", func() bool { return len(d.checks.strangers) == 3 })
		if got := d.signIn("", "ada", "a+long+password"); got != http.StatusTooManyRequests {
			t.Errorf("with every seat taken: %d", got)
		}
		cancel()
		group.Wait()
		<-d.checks.running
		if got := d.signIn("", "ada", "a+long+password"); got != http.StatusOK {
			t.Errorf("once they have gone: %d", got)
		}
	})
}
