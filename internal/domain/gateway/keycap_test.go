package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/budget"
	"yardmaster/internal/llm"
	"yardmaster/internal/proof/seed"
)

// TestKeyCapLeadsToAnotherKey: a call for which the limit of a key has no room goes over another
// key, what was called before the limit counts for it, and only where no key is left the work is
// held, until one has room again.
func TestKeyCapLeadsToAnotherKey(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, f *fixture) {
		f.write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Box{ID: "box", Account: "acme"}, seed.Task{ID: "task", Account: "acme", Repo: "repo"},
				seed.Run{ID: "run", Account: "acme", Task: "task", Repo: "repo", Box: "box"},
				seed.Session{ID: "work", Account: "acme", Repo: "repo", Run: new("run"), Task: new("task")})
		})
		var stopped, freed []string
		budget.RunStopped.On(f.DB, func(_ *db.Tx, s budget.Stopped) error { stopped = append(stopped, s.Why); return nil })
		budget.TaskFreed.On(f.DB, func(_ *db.Tx, s budget.Freed) error { freed = append(freed, s.ID); return nil })
		v := newVendor(t)
		dear := func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, answerOf(llm.Chat, false))
		}
		v.answers("key-a", dear)
		v.answers("key-b", dear)
		a, b := f.key(v, "key-a", `,"priority":1`), f.key(v, "key-b", `,"priority":2`)
		f.api(200, "PUT", "/v1/billing/prices", `{"provider":"compatible","model":"m","input_usd":1000,"output_usd":1000}`, nil)
		f.mu.Lock()
		f.attempt = &Attempt{SessionID: "work", AccountID: "acme", RunID: "run", Provider: "compatible", BaseURL: v.URL, Model: "m"}
		f.mu.Unlock()
		call := func(want int, over string) {
			t.Helper()
			f.later(2 * time.Second) // the grant is read anew
			before := v.calls(over)
			req := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/chat/completions",
				strings.NewReader(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer tok")
			rec := httptest.NewRecorder()
			f.caller.Gateway.ServeHTTP(rec, req)
			f.Close() // the cost is stored
			if rec.Code != want || over != "" && v.calls(over) != before+1 {
				t.Fatalf("%d %s, over %q %d calls", rec.Code, rec.Body, over, v.calls(over)-before)
			}
		}
		capped := func(key string, usd, spent string) {
			t.Helper()
			var now budget.KeyCap
			f.api(200, "PUT", "/v1/billing/keys/"+key+"/budget", `{"usd":`+usd+`}`, &now)
			if now.Spent != spent || now.Reserved != "0.00" {
				t.Errorf("%+v, want %s spent", now, spent)
			}
		}
		call(200, "key-a") // 1.10
		capped(a.ID, "2", "1.10")
		call(200, "key-a")
		call(200, "key-b")
		call(200, "key-b")
		capped(b.ID, "1", "2.20")
		if len(stopped) > 0 {
			t.Errorf("stopped: %v", stopped)
		}
		call(402, "")
		if len(stopped) != 1 || !strings.Contains(stopped[0], "key's budget") {
			t.Errorf("stopped: %q", stopped)
		}
		capped(b.ID, "2.1", "2.20")
		if len(freed) > 0 {
			t.Errorf("freed: %v", freed)
		}
		capped(b.ID, "20", "2.20")
		if len(freed) != 1 || freed[0] != "task" {
			t.Errorf("freed: %v", freed)
		}
		call(200, "key-b")
		f.api(404, "PUT", "/v1/billing/keys/"+f.session+"/budget", `{"usd":1}`, nil)
		// A key that is added is another way.
		capped(b.ID, "1", "3.30")
		call(402, "")
		f.later(time.Second)
		c := f.key(v, "key-c", "")
		f.write(func(tx *db.Tx) error { return f.Budget.Recheck(tx, "acme") })
		if len(freed) != 2 {
			t.Errorf("freed: %v", freed)
		}
		call(200, "key-c")
		f.api(200, "DELETE", "/v1/billing/keys/"+c.ID, "", nil)
	})
}
