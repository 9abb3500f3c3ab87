package gateway

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/proof/patience"
)

// TestManyKeysHideFailures: with twenty keys of a provider that fails one call in ten, nobody sees
// one fail, however many are under way; and a key rests only for calls that failed in a row.
func TestManyKeysHideFailures(t *testing.T) {
	t.Parallel()
	const total = 800
	f := newFixture(t, db.SQLite)
	v := newVendor(t)
	var asked, seen, next atomic.Int64
	failing := fails(500, `{"error":{"message":"oops"}}`)
	for i := range 20 {
		name := fmt.Sprintf("key-%02d-0123456789", i)
		f.key(v, name, `,"capacity":16`)
		v.answers(name, func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1)%10 == 0 {
				failing(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"choices":[{"message":{"content":"well"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`)
		})
	}
	var all sync.WaitGroup
	done := make(chan struct{})
	for range 48 {
		all.Go(func() {
			for next.Add(1) <= total {
				if status, _, _ := f.ask("tok", chat); status != 200 {
					seen.Add(1)
				}
			}
		})
	}
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-patience.Over(t):
		resting := 0
		for _, k := range f.rota.keys {
			if k.Unproven() {
				resting++
			}
		}
		t.Fatalf("the provider was asked %d times for %d calls, and %d keys rest", asked.Load(), total, resting)
	}
	if n := seen.Load(); n > 0 {
		t.Errorf("%d of %d calls were seen to fail, and the provider was asked %d times", n, total, asked.Load())
	}
}
