package ask

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/policy"
)

var fillAsks = db.S(`INSERT INTO asks (id, account_id, reach, title, body, source, labels, state,
	filed_by, scopes, depth, created_at)
	WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1)
	SELECT 'x' || i, 'acme', '[]', 'Wish no. ' || i || ' of all', 'b', 'agent', '{}', 'dropped', 'user:ann', '[]', 0, i FROM n`)

// TestSearchIsBounded holds that a search through many asks takes several pages
// rather than one long read, and that a bare cursor continues the search.
func TestSearchIsBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(y *yard) {
		y.write(func(tx *db.Tx) error { _, err := fillAsks.Exec(tx, 2*searched+10); return err })
		h := rest.Handler(rest.Config{Pipeline: &op.Pipeline{
			Authenticate: func(context.Context, op.Presented) (policy.Actor, error) {
				return policy.Actor{Credential: policy.PAT, CredentialID: "pat", UserID: "ann", AccountID: "acme",
					Scopes: policy.Owner.Ceiling()}, nil
			},
			Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
		}}, y.Ops())
		var found []string
		pages := 0
		for path := "/v1/asks?q=NO.+7+of&filter=state:dropped"; path != ""; pages++ {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
			var page struct {
				Data []struct{ ID string }
				Next *string `json:"next_cursor"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != 200 {
				y.t.Fatalf("%d %s, %v", w.Code, w.Body, err)
			}
			for _, a := range page.Data {
				found = append(found, a.ID)
			}
			if path = ""; page.Next != nil {
				path = "/v1/asks?cursor=" + *page.Next
			}
		}
		if pages != 3 || len(found) != 1 || found[0] != "x7" {
			y.t.Errorf("%v on %d pages", found, pages)
		}
	})
}
