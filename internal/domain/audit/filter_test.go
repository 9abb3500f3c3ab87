package audit

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/seed"
)

// TestFiltersAreBounded holds that a page with a filter looks at a part of a long record,
// and that the pages together have every row, once.
func TestFiltersAreBounded(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		if err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			for account, rows := range map[string]int{"acme": 2*searched + 1500, "rival": 2000} {
				if _, err := seed.FillAudit.Exec(tx, account, rows); err != nil {
					return err
				}
				if _, err := seed.AuditHead.Exec(tx, account, rows); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		h := rest.Handler(rest.Config{Pipeline: &op.Pipeline{
			Authenticate: func(context.Context, op.Presented) (policy.Actor, error) {
				scopes := policy.Scopes(policy.ReadSessions)
				return policy.Actor{Credential: policy.PAT, UserID: "ann", AccountID: "acme", Scopes: scopes}, nil
			},
			Enter: func(ctx context.Context, a policy.Actor) context.Context { return db.WithAccount(ctx, a.AccountID) },
		}}, New(Needs{DB: d}).Ops())
		walk := func(filter string) (seqs []int64, pages int) {
			for path := "/v1/audit/events?per_page=15&" + filter; path != ""; pages++ {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
				var page op.Page[Event]
				if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != 200 {
					t.Fatalf("%s: %d %s", path, w.Code, w.Body)
				}
				for _, e := range page.Data {
					if !strings.HasPrefix(e.ID, "acme") {
						t.Errorf("a row of another account: %s", e.ID)
					}
					seqs = append(seqs, e.Seq)
				}
				if path = ""; page.NextCursor != nil {
					path = "/v1/audit/events?per_page=15&cursor=" + *page.NextCursor
				}
			}
			return seqs, pages
		}
		rare, pages := walk("filter=kind:pair.rare")
		if len(rare) != 41 || pages < 3 || pages > 6 {
			t.Errorf("%d rows on %d pages", len(rare), pages)
		}
		for i, seq := range rare {
			if want := int64(41-i) * 1000; seq != want {
				t.Errorf("row %d is %d, want %d", i, seq, want)
			}
		}
		if one, _ := walk("filter=object:o7"); len(one) != 1 || one[0] != 7 {
			t.Errorf("about an object: %d", one)
		}
		if none, _ := walk("filter=kind:pair.&filter=actor:user:ann"); len(none) != 0 {
			t.Errorf("by somebody who did nothing: %d", none)
		}
	})
}
