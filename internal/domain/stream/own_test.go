package stream

import (
	"bytes"
	"context"
	"sync"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
)

// mine is a topic of one row, which it shows once.
type mine struct{}

func (mine) Notice(userID string) string { return "mine/" + userID }

func (mine) Newest(*db.Tx, string, int) ([]Row, int64, error) {
	return []Row{{ID: "one", Value: "1"}}, 1, nil
}

func (mine) Since(_ *db.Tx, _ string, since int64, _ int) ([]Row, int64, error) {
	return nil, since, nil
}

// reel keeps what was sent.
type reel struct {
	mu  sync.Mutex
	got bytes.Buffer
}

func (r *reel) Open(int) {}

func (r *reel) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got.Write(b)
}

func (r *reel) has(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Contains(r.got.Bytes(), []byte(text))
}

// Who follows rows of their own alone starts no feed: it would read whatever happens in the
// account, for nobody.
func TestOwnNeedsNoFeed(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		in(t, d, "acme", func(tx *db.Tx) error { return seed.Add(tx, seed.Account{ID: "acme"}) })
		s := New(Needs{
			DB: d, Hub: event.NewHub(), Repos: noRepos{},
			Topics: []Topic{{Topic: pairTopic, Rows: Rows(pairs, func(p pair) string { return p.Name })}},
			Own:    []Own{{Name: "mine", Scope: policy.ReadAccount, Rows: mine{}}},
		})
		feeds := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return len(s.feeds)
		}
		actor := policy.Actor{
			Credential: policy.PAT, CredentialID: "x", UserID: "ann", AccountID: "acme",
			Scopes: policy.Scopes(policy.ReadAccount, policy.ReadTasks),
		}
		row := s.Ops()[0]
		for topics, want := range map[string]int{"mine": 0, "mine,pairs": 1} {
			ctx, leave := context.WithCancel(policy.With(db.WithAccount(t.Context(), "acme"), actor))
			var sent reel
			var over sync.WaitGroup
			over.Go(func() {
				p := &op.Pipeline{BaseURL: "http://yard", Authenticate: func(context.Context, op.Presented) (policy.Actor, error) {
					return actor, nil
				}, Enter: func(ctx context.Context, _ policy.Actor) context.Context { return ctx }}
				p.Do(ctx, &op.Call{Op: &row, Tail: &sent, Sent: op.Sent{Query: "topics=" + topics}})
			})
			patience.Until(t, "the row of "+topics, func() bool { return sent.has(`"one"`) })
			if got := feeds(); got != want {
				t.Errorf("%s: %d feeds", topics, got)
			}
			leave()
			over.Wait()
			if got := feeds(); got != 0 {
				t.Errorf("%s: %d feeds are left", topics, got)
			}
		}
	})
}
