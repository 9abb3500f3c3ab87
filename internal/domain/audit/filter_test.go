package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/event/hashchain"
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

// TestAddressesAreForAdmins holds that who may read the record, but does not manage members,
// does not read from where people sign in.
func TestAddressesAreForAdmins(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		err := d.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error {
			if err := seed.Add(tx, seed.Account{ID: "acme"}); err != nil {
				return err
			}
			return signedIn.Record(tx, event.Subject{ID: "ada"}, address{Method: "password", IP: "192.0.2.7"})
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			scopes policy.Set
			sees   bool
		}{
			"viewer": {policy.Viewer.Ceiling(), false}, "member": {policy.Member.Ceiling(), false},
			"admin": {policy.Admin.Ceiling(), true}, "owner": {policy.Owner.Ceiling(), true},
			"a narrow token": {policy.Scopes(policy.ReadSessions), false},
		} {
			for _, filter := range [][]string{nil, {"kind:audit_test.signed_in"}, {"object:ada"}} {
				a := policy.Actor{Credential: policy.PAT, UserID: "ann", AccountID: "acme", Scopes: c.scopes}
				in := listIn{op.PageIn{PerPage: 9, Filter: filter}}
				out, err := New(Needs{DB: d}).tail(db.WithAccount(policy.With(t.Context(), a), "acme"), in)
				if err != nil || len(out.Data) != 1 {
					t.Fatalf("%s: %+v, %v", name, out, err)
				}
				row := out.Data[0]
				if sees := strings.Contains(string(row.Data), "192.0.2.7"); sees != c.sees || (row.Withheld == nil) != c.sees ||
					!strings.Contains(string(row.Data), `"method":"password"`) {
					t.Errorf("%s reads %s without %v", name, row.Data, row.Withheld)
				}
				whole, err := json.Marshal(row)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := hashchain.Verify(strings.NewReader(string(whole))); strings.Contains(fmt.Sprint(err), "withheld") == c.sees {
					t.Errorf("%s verifies: %v", name, err)
				}
			}
		}
	})
}

type address struct {
	Method string `json:"method"`
	IP     string `json:"ip" shown:"admins"`
}

var signedIn = event.Declare[address]("audit_test.signed_in", event.Audience(policy.ReadAccount), "Somebody signed in.")
