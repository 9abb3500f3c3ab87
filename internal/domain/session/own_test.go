package session

import (
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

// A conversation whose node has died is over once none of its kind takes so long.
func TestLostConversations(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	now.Store(1_700_000_000)
	clock := func() time.Time { return time.Unix(now.Load(), 0) }
	dbtest.RunWith(t, db.Options{Clock: clock}, func(t *testing.T, d *db.DB) {
		s := New(Needs{DB: d, Hub: event.NewHub(), Runs: runs{}, Policies: &fixture{}})
		write := func(account string, fn func(tx *db.Tx) error) {
			t.Helper()
			ctx := policy.With(db.WithAccount(t.Context(), account), policy.Actor{Credential: policy.System})
			if err := d.Write(ctx, fn); err != nil {
				t.Fatal(err)
			}
		}
		begin := func(account, id, kind string) {
			write(account, func(tx *db.Tx) error { return s.BeginOwn(tx, Own{ID: id, Trigger: "question", Kind: kind}) })
		}
		write("", func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
				return err
			}
			return seed.Add(tx, seed.Account{ID: "rival"})
		})
		begin("acme", "old", "ask")
		begin("acme", "triage", "triage")
		begin("rival", "theirs", "ask")
		now.Add(11 * 60)
		begin("acme", "new", "ask")
		write("acme", func(tx *db.Tx) error { return s.EndLost(tx, "ask", 10*time.Minute) })
		var ended []string
		write("acme", func(tx *db.Tx) (err error) {
			ended, err = db.Select[string](tx, db.Build(`SELECT id || ' ' || outcome AS s FROM sessions WHERE ended_at IS NOT NULL ORDER BY id`))
			return err
		})
		if len(ended) != 1 || ended[0] != "old lost" {
			t.Errorf("ended: %q", ended)
		}
		now.Store(1_700_000_000)
	})
}
