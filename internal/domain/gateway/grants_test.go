package gateway

import (
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
	"yardmaster/internal/seal"
)

// TestGrantsAreRenewed: a grant that is used is looked up again before it is old, beside the calls;
// one that cannot be renewed is not used for longer.
func TestGrantsAreRenewed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, db.SQLite)
	f.addKey(`{"provider":"scripted"}`)
	at := grantKey{seal.Hash("tok"), llm.Chat}
	ask := func() error {
		_, err := f.Authorize(t.Context(), "tok", llm.Chat, "m")
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	f.later(grantTime / 2)
	for range 3 {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	f.writes.Wait()
	if g := f.grants[at]; !g.until.Equal(f.clock().Add(grantTime)) || g.renewed {
		t.Errorf("it is good until %v", g.until)
	}
	f.mu.Lock()
	f.attempt = nil
	f.mu.Unlock()
	f.later(grantTime / 2)
	if err := ask(); err != nil {
		t.Errorf("while it is looked up: %v", err)
	}
	f.writes.Wait()
	f.later(grantTime / 2)
	if err := ask(); !fault.IsKind(err, fault.Unauthenticated) {
		t.Errorf("after the attempt has ended: %v", err)
	}
}
