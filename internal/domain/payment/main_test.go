package payment

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/due"
	"yardmaster/internal/db/due/duetest"
	"yardmaster/internal/domain/people"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/proof/till"
	"yardmaster/internal/stripe"
)

func TestStatements(t *testing.T) {
	t.Parallel()
	dbtest.Declared(t)
}

// audited are the events of an account, with their data.
var audited = db.Q[struct{ Kind, Data string }](`SELECT kind, data FROM audit WHERE account_id = $1 ORDER BY seq`)

// spending is no spending at all.
type spending struct{}

// Spent implements Spending.
func (spending) Spent(*db.Tx) (Spent, error) {
	return Spent{Period: "2026-03", Spent: "0", Reserved: "0"}, nil
}

// MayGive implements Spending: nobody may without paying.
func (spending) MayGive(*db.Tx, string) (bool, error) { return false, nil }

// yard is two nodes of a server that take payment at one till.
type yard struct {
	t     *testing.T
	ctx   context.Context // of acme
	db    *db.DB
	till  *till.Till
	nodes [2]*Service
	http  [2]http.Handler
	log   *lines

	mu sync.Mutex
	at time.Time
}

// lines is what the nodes log.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (y *yard) now() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.at
}

// later moves the clock on, and has done what is due by then.
func (y *yard) later(d time.Duration) {
	y.t.Helper()
	y.mu.Lock()
	y.at = y.at.Add(d)
	y.mu.Unlock()
	y.work()
}

func (y *yard) work() {
	y.t.Helper()
	duetest.Pass(y.ctx, y.t, y.nodes[0].Due, y.nodes[1].Due)
}

// onBoth runs a test on each engine, with acme on the tier free and without seats.
func onBoth(t *testing.T, fn func(*yard)) {
	t.Helper()
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			y := &yard{t: t, at: time.Unix(1_700_000_000, 0).UTC(), till: till.Open(t), log: &lines{}}
			y.db = dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: y.now})
			y.ctx = policy.With(db.WithAccount(t.Context(), "acme"), policy.Actor{Credential: policy.System})
			for i := range y.nodes {
				hub := event.NewHub()
				y.nodes[i] = New(Needs{
					DB: y.db, Hub: hub, Due: due.New(due.Config{DB: y.db, Hub: hub, Logger: slog.New(slog.DiscardHandler)}),
					Logger: slog.New(slog.NewTextHandler(y.log, nil)), Spending: spending{}, Clock: y.now, BaseURL: "https://y.example",
					Provider: stripe.New(y.till.URL, till.Key), Secret: till.Secret, Grace: 14 * day,
					Prices: map[string][]string{Seats: {"price_seat", "price_old"}, OSSDonor: {"price_donor"}},
				})
				y.http[i] = rest.Handler(rest.Config{
					Pipeline: &op.Pipeline{BaseURL: "https://y.example", Limits: limit.New(y.now)},
				}, y.nodes[i].Ops())
			}
			y.write(func(tx *db.Tx) error {
				for _, a := range []string{"acme", "other"} {
					if err := seed.Add(tx, seed.Account{ID: a, Tier: string(people.TierFree)}); err != nil {
						return err
					}
					if err := people.SetSeats(tx, a, 0); err != nil {
						return err
					}
				}
				return nil
			})
			fn(y)
			y.tellsNothing()
		})
	}
}

const day = 24 * time.Hour

func (y *yard) write(fn func(tx *db.Tx) error) {
	y.t.Helper()
	if err := y.db.Write(y.ctx, fn); err != nil {
		y.t.Fatal(err)
	}
}

// tellsNothing fails the test if a secret of the till was logged or stored.
func (y *yard) tellsNothing() {
	y.t.Helper()
	said := y.log.String()
	y.write(func(tx *db.Tx) error {
		rows, err := audited.All(tx, "acme")
		for _, r := range rows {
			said += r.Kind + r.Data
		}
		if c, ok, err := customerOf.Maybe(tx, "acme"); err != nil {
			return err
		} else if ok && c.LastError != nil {
			said += *c.LastError
		}
		return err
	})
	if strings.Contains(said, "canary") {
		y.t.Errorf("a secret of Stripe is in\n%s", said)
	}
}

// customer makes acme a customer, who is asked about once.
func (y *yard) customer() string {
	y.t.Helper()
	if _, err := y.nodes[0].checkout(y.ctx, checkoutIn{Kind: Seats, Quantity: 4}); err != nil {
		y.t.Fatal(err)
	}
	y.work()
	var c customer
	y.write(func(tx *db.Tx) (err error) { c, err = customerOf.One(tx, "acme"); return err })
	return c.CustomerID
}

// deliver sends an event to a node, and answers what became of it.
func (y *yard) deliver(node int, body []byte, signature string) (status int, kind, problem string) {
	y.t.Helper()
	r := httptest.NewRequestWithContext(y.t.Context(), http.MethodPost, "/v1/billing/stripe/webhook", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	r.Header.Set(stripe.Header, signature)
	w := httptest.NewRecorder()
	y.http[node].ServeHTTP(w, r)
	var out struct{ Kind, Type string }
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		y.t.Errorf("%d %s: %v", w.Code, w.Body, err)
	}
	return w.Code, out.Kind, out.Type[strings.LastIndex(out.Type, "/")+1:]
}

// nudge delivers an event about a customer, which must be taken as kind.
func (y *yard) nudge(node int, id, customer, kind string) {
	y.t.Helper()
	body := till.Event(id, "customer.subscription.updated", customer)
	if status, got, _ := y.deliver(node, body, till.Sign(body, till.Secret, y.now())); status != http.StatusOK || got != kind {
		y.t.Errorf("%s: %d %s", id, status, got)
	}
}

// has is what acme has, in words.
type has struct {
	tier  people.Tier
	seats int64
	donor bool
}

func (y *yard) has() (out has) {
	y.t.Helper()
	b, err := y.nodes[1].get(y.ctx, op.None{})
	if err != nil {
		y.t.Fatal(err)
	}
	donor := false
	y.write(func(tx *db.Tx) (err error) { donor, err = y.nodes[0].Donor(tx, "acme"); return err })
	if donor != b.OSSDonor {
		y.t.Errorf("a donor: %v, and %v", donor, b.OSSDonor)
	}
	return has{b.Tier, b.Seats, donor}
}

func (y *yard) want(when string, want has) {
	y.t.Helper()
	if got := y.has(); got != want {
		y.t.Errorf("%s acme has %+v, not %+v", when, got, want)
	}
}

// events are the kinds of acme's events.
func (y *yard) events() (kinds []string) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		kinds = nil
		rows, err := audited.All(tx, "acme")
		for _, r := range rows {
			kinds = append(kinds, strings.TrimPrefix(r.Kind, "billing."))
		}
		return err
	})
	return kinds
}
