package idempotency

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// TestAnswerCommitsWithTheChange holds that the answer commits with the change. A
// node that dies right after the commit runs nothing more, as after a kill -9, and
// the others have the answer.
func TestAnswerCommitsWithTheChange(t *testing.T) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		t.Run(e.String(), func(t *testing.T) {
			dsn := dbtest.DSN(t, e)
			runs := counter{committed: make(chan struct{})}
			dying := serve(dbtest.Open(t, dsn, db.Options{}), &runs)
			other := dying
			if e == db.Postgres { // a SQLite file has one server
				other = serve(dbtest.Open(t, dsn, db.Options{}), &runs)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/kept", strings.NewReader(`{"name": "killed"}`))
				req.Header.Set("X-As", "acme/a")
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Idempotency-Key", "k")
				dying.ServeHTTP(httptest.NewRecorder(), req)
			}()
			<-runs.committed
			a := other.send(t, "POST", "/v1/kept", "acme/a", "k", `{"name": "killed"}`)
			if a.StatusCode != 201 || !a.replayed() || a.body["n"] != 1.0 || runs.n != 1 || count(t, other.ledger.DB) != 1 {
				t.Errorf("%d %v after %d runs", a.StatusCode, a.body, runs.n)
			}
			cancel()
			<-ended
		})
	}
}

// TestAnswerAfterTheChange holds that the final answer is kept, unless it is an
// internal error, because the change is there.
func TestAnswerAfterTheChange(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		var runs counter
		n := serve(d, &runs)
		for name, want := range map[string]struct {
			status int     // of the first
			n      float64 // in the second
		}{"as it was": {201, 0}, "changed": {201, -1}, "late failure": {500, 0}} {
			runs.n = -1
			body := `{"name": "` + name + `"}`
			first, second := n.send(t, "POST", "/v1/kept", "acme/a", name, body), n.send(t, "POST", "/v1/kept", "acme/a", name, body)
			if first.StatusCode != want.status || second.StatusCode != 201 || !second.replayed() || second.body["n"] != want.n ||
				runs.n != 0 {
				t.Errorf("%s: %d %v, then %d %v, after %d runs", name, first.StatusCode, first.body, second.StatusCode, second.body,
					runs.n+1)
			}
		}
		if got := count(t, d); got != 3 {
			t.Errorf("%d effects", got)
		}
	})
}
