package emailroute

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/mail"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/seal"
)

func TestStatements(t *testing.T) { t.Parallel(); dbtest.Declared(t) }

// team is a service with two accounts, and all mails that it sends.
type team struct {
	*Service
	t       *testing.T
	now     time.Time
	letters []mail.Letter
}

// Send implements mail.Transport.
func (m *team) Send(_ context.Context, l mail.Letter) error {
	m.letters = append(m.letters, l)
	return nil
}

func onBoth(t *testing.T, fn func(*team)) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			m := &team{t: t, now: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)}
			d := dbtest.Open(t, dbtest.DSN(t, e), db.Options{Clock: func() time.Time { return m.now }})
			ring := seal.New()
			outbox := &mail.Outbox{
				DB: d, Hub: event.NewHub(), Ring: ring, Transport: m, From: "ym@example.com", Logger: slog.New(slog.DiscardHandler),
			}
			m.Service = New(Needs{DB: d, Ring: ring, Mail: outbox, BaseURL: "https://ym.example.com", Kinds: []Kind{
				{"escalation", "A question that nobody but a person can decide."}, {"plan", "A plan has failed, or is done."},
			}})
			m.write("acme", func(tx *db.Tx) error {
				return seed.Add(tx, seed.Account{ID: "acme"}, seed.Account{ID: "other"}, seed.User{ID: "ann"},
					seed.Member{Account: "acme", User: "ann", Role: "owner"}, seed.Member{Account: "other", User: "ann", Role: "owner"})
			})
			fn(m)
		})
	}
}

func (m *team) as(account string) context.Context {
	return policy.With(db.WithAccount(m.t.Context(), account), policy.Actor{
		Credential: policy.Session, UserID: "ann", AccountID: account, Role: policy.Owner, Scopes: policy.Owner.Ceiling(),
	})
}

func (m *team) write(account string, fn func(*db.Tx) error) {
	m.t.Helper()
	if err := m.DB.Write(m.as(account), fn); err != nil {
		m.t.Fatal(err)
	}
}

// posted sends the mails that are due, and answers them.
func (m *team) posted() []mail.Letter {
	m.t.Helper()
	m.letters = nil
	if err := m.Mail.Pass(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
	return m.letters
}

// made makes a route, and answers the token of the question.
func (m *team) made(account, address string, kinds ...string) (r Route, token string) {
	m.t.Helper()
	r, err := m.create(m.as(account), createIn{Address: address, Kinds: kinds})
	if err != nil {
		m.t.Fatal(err)
	}
	sent := m.posted()
	if len(sent) != 1 || sent[0].To != r.Address || sent[0].List != "" || sent[0].Unsubscribe != "" {
		m.t.Fatalf("asked by %+v", sent)
	}
	return r, tokenOf(m.t, sent[0].Text[strings.Index(sent[0].Text, "https://"):])
}

// tokenOf is the token of the address at the start of a text.
func tokenOf(t *testing.T, text string) string {
	t.Helper()
	u, err := url.Parse(strings.Fields(text)[0])
	if err != nil || u.Query().Get("token") == "" {
		t.Fatalf("%q has no token: %v", text, err)
	}
	return u.Query().Get("token")
}

func (m *team) pressed(do func(context.Context, pressIn) (op.Reply, error), token string) error {
	_, err := do(m.t.Context(), pressIn{Token: token})
	return err
}

// tell delivers a notice of an account, and answers what was mailed.
func (m *team) tell(account string, n Notice) []mail.Letter {
	m.t.Helper()
	m.write(account, func(tx *db.Tx) error { return m.Deliver(tx, n) })
	return m.posted()
}

func slug(err error) string {
	var f *fault.Error
	if errors.As(err, &f) {
		return f.Slug
	}
	return fmt.Sprint(err)
}

var failed = Notice{
	Kind: "plan", Noun: "plan", Subject: "p1", Repo: "acme/web", About: "Plan: x", Title: "Failed: x", URL: "https://ym.example.com/ui/",
}

// Nothing is sent to an address before somebody there has confirmed it, and then each
// notice of its kinds and its account once, until a link of a mail ends a kind.
func TestRoute(t *testing.T) {
	t.Parallel()
	onBoth(t, func(m *team) {
		r, token := m.made("acme", "Team@example.com", "plan", "escalation")
		_, second := m.made("acme", "ops@example.com", "plan")
		if got := m.tell("acme", failed); len(got) != 0 {
			m.t.Fatalf("before it was confirmed: %+v", got)
		}
		if err := errors.Join(m.pressed(m.confirm, token), m.pressed(m.confirm, token), m.pressed(m.confirm, second)); err != nil {
			m.t.Fatal(err)
		}
		got := m.tell("acme", failed)
		if len(got) != 2 || len(m.tell("other", failed)) != 0 {
			m.t.Fatalf("%+v", got)
		}
		i := slices.IndexFunc(got, func(l mail.Letter) bool { return l.To == "team@example.com" })
		l := got[i]
		if l.Subject != "[acme/web] Plan: x" || l.List != "plan" || l.Thread == "" || l.Unsubscribe == got[1-i].Unsubscribe {
			m.t.Errorf("%+v", l)
		}
		again := failed
		again.Title = "Done: x"
		if next := m.tell("acme", again); len(next) != 2 || next[0].Subject != l.Subject {
			m.t.Errorf("%+v", next)
		}
		for range 2 {
			if err := m.pressed(m.stop, tokenOf(m.t, l.Unsubscribe)); err != nil {
				m.t.Fatal(err)
			}
		}
		if got := m.tell("acme", failed); len(got) != 1 || got[0].To != "ops@example.com" {
			m.t.Errorf("after it was ended: %+v", got)
		}
		urgent := failed
		urgent.Kind = "escalation"
		got = m.tell("acme", urgent)
		if len(got) != 1 || got[0].To != "team@example.com" {
			m.t.Fatalf("the other kind: %+v", got)
		}
		// The last kind takes the route with it, and its links.
		if err := m.pressed(m.stop, tokenOf(m.t, got[0].Unsubscribe)); err != nil {
			m.t.Fatal(err)
		}
		page, err := m.list(m.as("acme"), listIn{op.FirstPage("email_route.list", paging)})
		if err != nil || len(page.Data) != 1 || page.Data[0].ID == r.ID {
			m.t.Errorf("%+v, %v", page.Data, err)
		}
		if got := slug(m.pressed(m.confirm, token)); got != "email-route-link-expired" {
			m.t.Errorf("the question of a route that is gone: %s", got)
		}
	})
}

// A link that asks is good for 48 hours, one that ends a kind for 60 days; neither does the
// other's work.
func TestLinks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(m *team) {
		r, token := m.made("acme", "team@example.com", "plan")
		begun := m.now
		m.now = begun.Add(confirmLife)
		if got := slug(m.pressed(m.confirm, token)); got != "email-route-link-expired" {
			m.t.Errorf("after 48 hours: %s", got)
		}
		if got := slug(m.pressed(m.stop, token)); got != "email-route-link-malformed" {
			m.t.Errorf("as the other sort: %s", got)
		}
		if _, err := m.resend(m.as("acme"), idIn{ID: r.ID}); err != nil {
			m.t.Fatal(err)
		}
		sent := m.posted()
		token = tokenOf(m.t, sent[0].Text[strings.Index(sent[0].Text, "https://"):])
		m.now = m.now.Add(confirmLife - time.Second)
		if err := m.pressed(m.confirm, token); err != nil {
			m.t.Error(err)
		}
		stop := tokenOf(m.t, m.tell("acme", failed)[0].Unsubscribe)
		m.now = m.now.Add(stopLife)
		if got := slug(m.pressed(m.stop, stop)); got != "email-route-link-expired" {
			m.t.Errorf("after 60 days: %s", got)
		}
		// Another account does not find the route.
		if _, err := m.delete(m.as("other"), idIn{ID: r.ID}); slug(err) != "not-found" {
			m.t.Errorf("of another account: %v", err)
		}
	})
}

// An account cannot use the server to write to strangers as often as it likes: not by
// routes that it deletes either.
func TestLimits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(m *team) {
		var last Route
		for i := range maxRoutes {
			last, _ = m.made("acme", fmt.Sprintf("team%d@example.com", i), "plan")
		}
		in := createIn{Address: "more@example.com", Kinds: []string{"plan"}}
		if _, err := m.create(m.as("acme"), in); slug(err) != "too-many-email-routes" {
			m.t.Errorf("a route too many: %v", err)
		}
		for i := range maxAsked - maxRoutes {
			if _, err := m.delete(m.as("acme"), idIn{ID: last.ID}); err != nil {
				m.t.Fatal(err)
			}
			last, _ = m.made("acme", fmt.Sprintf("next%d@example.com", i), "plan")
		}
		if _, err := m.resend(m.as("acme"), idIn{ID: last.ID}); slug(err) != "too-many-confirmations" {
			m.t.Errorf("a mail too many: %v", err)
		}
		if _, err := m.delete(m.as("acme"), idIn{ID: last.ID}); err != nil {
			m.t.Fatal(err)
		}
		if _, err := m.create(m.as("acme"), in); slug(err) != "too-many-confirmations" {
			m.t.Errorf("a mail too many: %v", err)
		}
		m.made("other", "more@example.com", "plan")
		m.now = m.now.Add(askedIn)
		m.made("acme", "more@example.com", "plan")
	})
}

// A stranger is asked three times a day by an account and ten times by all of them, also by
// routes that are deleted in between.
func TestStranger(t *testing.T) {
	t.Parallel()
	onBoth(t, func(m *team) {
		asks := func(account string) string {
			r, err := m.create(m.as(account), createIn{Address: "Stranger@example.com", Kinds: []string{"plan"}})
			if err != nil {
				return slug(err)
			}
			if _, err := m.delete(m.as(account), idIn{ID: r.ID}); err != nil {
				m.t.Fatal(err)
			}
			return ""
		}
		for i := range maxThere + 1 {
			if got := asks("acme"); (got == "too-many-confirmations") != (i == maxThere) {
				m.t.Errorf("question %d: %q", i, got)
			}
		}
		all := maxThere
		for i := range 4 {
			account := fmt.Sprintf("more%d", i)
			m.write("acme", func(tx *db.Tx) error {
				return seed.Add(tx, seed.Account{ID: account}, seed.Member{Account: account, User: "ann", Role: "owner"})
			})
			for asks(account) == "" {
				all++
			}
		}
		if all != maxAnyone {
			m.t.Errorf("all accounts asked %d times", all)
		}
		m.now = m.now.Add(askedIn)
		if got := asks("acme"); got != "" {
			m.t.Errorf("the day after: %s", got)
		}
	})
}

// Addresses of one mailbox are asked ten times a day together, whatever their tags.
func TestTags(t *testing.T) {
	t.Parallel()
	onBoth(t, func(m *team) {
		for i := range maxAnyone + 1 {
			_, err := m.create(m.as("acme"), createIn{Address: fmt.Sprintf("Stranger+%d@example.com", i), Kinds: []string{"plan"}})
			if (err != nil) != (i == maxAnyone) || err != nil && slug(err) != "too-many-confirmations" {
				m.t.Errorf("question %d: %v", i, err)
			}
		}
		if _, err := m.create(m.as("acme"), createIn{Address: "another+1@example.com", Kinds: []string{"plan"}}); err != nil {
			m.t.Errorf("another mailbox: %v", err)
		}
	})
}

// An address gets 30 notices of a kind an hour.
func TestStorm(t *testing.T) {
	t.Parallel()
	onBoth(t, func(m *team) {
		_, token := m.made("acme", "team@example.com", "plan", "escalation")
		if err := m.pressed(m.confirm, token); err != nil {
			m.t.Fatal(err)
		}
		m.write("acme", func(tx *db.Tx) error {
			var err error
			for range 40 {
				err = errors.Join(err, m.Deliver(tx, failed))
			}
			return err
		})
		if got := m.posted(); len(got) != maxMails || !strings.Contains(got[maxMails-1].Text, "30th mail") {
			m.t.Errorf("%d mails", len(got))
		}
		urgent := failed
		urgent.Kind = "escalation"
		if got := m.tell("acme", urgent); len(got) != 1 {
			m.t.Errorf("of another kind: %d", len(got))
		}
		m.now = m.now.Add(mailsIn)
		if got := m.tell("acme", failed); len(got) != 1 {
			m.t.Errorf("after an hour: %d", len(got))
		}
	})
}
