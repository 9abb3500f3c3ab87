package repo

import (
	"context"
	"errors"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/event"
)

var (
	dueIn    = db.Q[*int64](`SELECT refresh_due FROM repos WHERE owner = 'acme' AND name = 'web'`)
	putOff   = db.S(`UPDATE repos SET refresh_due = $1`)
	policyIs = db.Q[string](`SELECT COALESCE(policy_yml, '') FROM repos WHERE owner = 'acme' AND name = 'web'`)
)

// interrupted is a code host that does something before it answers what a file
// holds.
type interrupted struct {
	codehost.Host
	first func() error
}

func (h *interrupted) ReadFile(ctx context.Context, r codehost.Repo, rev, path string) ([]byte, string, error) {
	if err := h.first(); err != nil {
		return nil, "", err
	}
	return h.Host.ReadFile(ctx, r, rev, path)
}

// A policy file is read again when that is due, until it was read, and once more
// if it became due meanwhile.
func TestRefreshSoon(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, s *site) {
		s.make()
		host := &interrupted{Host: s.host, first: func() error { return nil }}
		s.Hosts = served(host)
		soon := func() {
			s.write("acme", func(tx *db.Tx) error {
				r, _, err := ByName(tx, "acme", "web")
				if err != nil {
					return err
				}
				return s.RefreshSoon(tx, r.ID)
			})
		}
		holds := func(text string, isDue bool) {
			t.Helper()
			s.write("acme", func(tx *db.Tx) error {
				got, err := policyIs.One(tx)
				if err != nil {
					return err
				}
				at, err := dueIn.One(tx)
				if got != text || isDue != (at != nil) {
					t.Errorf("the policy is %q, due at %v", got, at)
				}
				return err
			})
		}
		const text = "version: 1\nmerge: {mode: auto}\n"
		s.commit(PolicyPath, text) // and nobody tells
		news := s.Hub.Watch(event.RepoTopic)
		soon()
		select {
		case <-news:
		default:
			t.Error("the loop is not woken")
		}
		holds("", true)

		host.first = func() error { return errors.New("no answer") }
		s.RefreshDue(t.Context())
		host.first = func() error { return nil }
		s.RefreshDue(t.Context()) // too soon
		holds("", true)
		s.write("acme", func(tx *db.Tx) error { _, err := putOff.Exec(tx, tx.Now); return err })
		host.first = func() error { soon(); return nil }
		s.RefreshDue(t.Context())
		holds(text, true)
		host.first = func() error { return nil }
		s.RefreshDue(t.Context())
		holds(text, false)

		s.write("acme", func(tx *db.Tx) error { _, err := putOff.Exec(tx, tx.Now.Add(time.Hour)); return err })
		s.RefreshDue(t.Context())
		holds(text, true)
		s.write("acme", ClockSetBack)
		s.RefreshDue(t.Context())
		holds(text, false)

		before := s.writes.Load()
		s.RefreshDue(t.Context())
		if n := s.writes.Load() - before; n > 0 {
			t.Errorf("%d transactions write although nothing is due", n)
		}
	})
}
