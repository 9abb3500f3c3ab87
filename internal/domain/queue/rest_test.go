package queue

import (
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/seed"
)

// A07, before a try is spent: a task all of whose keys rest is not claimed, says until when, and
// goes at once when one serves.
func TestA07NotClaimedWhileKeysRest(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		bob := "bob"
		f.write("acme", func(tx *db.Tx) error {
			return seed.Add(tx, seed.User{ID: bob}, seed.Member{Account: "acme", User: bob})
		})
		id := f.create(nil)
		now := time.UnixMicro(f.clock.Load())
		rest := func(passes bool) *Need {
			return &Need{Agent: "claude", Rest: Rest{Since: now, Until: now.Add(2 * time.Hour), Why: "it is spent", Passes: passes}}
		}
		people := func(want int64) {
			t.Helper()
			f.write("acme", func(tx *db.Tx) error {
				b := countTasks("acme")
				if err := f.NarrowPeople(tx, b); err != nil {
					return err
				}
				n, err := db.Select[int64](tx, b)
				if err == nil && n[0] != want {
					t.Errorf("%d tasks wait for people, want %d", n[0], want)
				}
				return err
			})
		}
		f.others.needed = rest(true)
		held := f.get(id)
		if got := reasons(held); f.claim() != "" || len(got) != 1 || got[0] != task.HoldKey {
			t.Fatalf("holds %v", got)
		}
		h := held["holds"].([]any)[0].(object)
		when := h["clears_when"].(string)
		if !strings.Contains(when, now.Add(2*time.Hour).UTC().Format(time.RFC3339)) || !strings.Contains(when, "it is spent") {
			t.Errorf("clears when %s", when)
		}
		if h["clear"].(object)["capability"] != "billing.key_add" {
			t.Errorf("clear %v", h["clear"])
		}
		people(0)
		f.write("acme", func(tx *db.Tx) error {
			o, err := f.Look(tx, f.box)
			if wait := now.Add(2 * time.Hour).Sub(tx.Now); err == nil && (o.Work || o.Wait != wait) {
				t.Errorf("outlook %+v, want to look again in %v", o, wait)
			}
			if got, err := f.Fleet(tx, "acme", "user:ann", nil); err != nil || got.Key != "" {
				t.Errorf("the account lacks %q, %v", got.Key, err)
			}
			return err
		})
		f.others.needed = rest(false)
		people(1)
		if got := f.get(id)["attempt"]; got != 0.0 {
			t.Errorf("attempt %v", got)
		}

		// Who has a key of their own goes before others do, and what is lent for the repository serves all.
		f.others.needed.Own = []string{bob}
		for range heads {
			f.create(nil)
		}
		f.write("acme", func(tx *db.Tx) error {
			r, err := f.others.ByID(tx, "acme-web")
			if err != nil {
				return err
			}
			_, err = f.Create(tx, r, task.Spec{Kind: task.KindWork, Sink: task.SinkQueued, Title: "his", Problem: "p", RequestedBy: &bob,
				Priority: task.DefaultPriority})
			return err
		})
		if got := f.claim(); got == id || got == "" {
			t.Errorf("claimed %q, want that of the person", got)
		}
		f.others.needed.Lent = map[string]Rest{"acme-web": {}}
		if got := f.claim(); got != id {
			t.Errorf("claimed %q over a key that is lent, want %s", got, id)
		}
	})
}

// A repository for which a key is lent goes when that serves, and says when that is.
func TestLentKeysRest(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		id, now := f.create(nil), time.UnixMicro(f.clock.Load())
		need := Need{Agent: "claude", NoKey: "of the provider google"}
		need.Lent = map[string]Rest{"acme-web": {Until: now.Add(time.Minute), Why: "w"}}
		f.others.needed = &need
		h := f.get(id)["holds"].([]any)
		if f.claim() != "" || len(h) != 1 || !strings.Contains(h[0].(object)["clears_when"].(string), "(w)") {
			t.Fatalf("holds %v", h)
		}
		need.Lent = map[string]Rest{"acme-web": {}}
		if got := f.claim(); got != id {
			t.Errorf("claimed %q", got)
		}
	})
}
