package app

import (
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/db"
)

var trailOf = db.Q[string](`SELECT capability FROM operator_trail WHERE request_id = $1`)

// TestOperatorsLeaveTheirTrail holds that whatever an operator reads with a
// scope of the platform's is on record, under the row's own name.
func TestOperatorsLeaveTheirTrail(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	ids := y.seed(y.acct, "acme")
	var applied struct{ ID string }
	decode(t, y.send("POST", "/v1/access-requests", "the-form", `{"email": "carl@example.com"}`).want(201), &applied)
	ids["account"], ids["userId"], ids["access_request"] = y.acct, y.user, applied.ID
	for _, o := range Ops() {
		if o.Method != http.MethodGet || o.IsStream() || !strings.Contains(strings.Join(o.Rule.Names(), " "), "admin:read:") {
			continue
		}
		switch o.ID {
		case "code_host.setup_page", "code_host.setup_end": // they read nothing of anybody
			continue
		case "account.platform_goals": // its transcript has a board to read
			continue
		}
		t.Run(o.ID, func(t *testing.T) {
			y := &yard{App: y.App, t: t, acct: y.acct, user: y.user, owner: y.owner}
			path := filled(o, ids)
			switch o.ID {
			case "account.user_get":
				path = "/v1/admin/users/" + y.user
			case "grant.list":
				path += "?account_id=" + y.acct
			}
			a := y.send(o.Method, path, y.owner, "").want(http.StatusOK)
			var names []string
			y.in(y.acct, func(tx *db.Tx) (err error) {
				names, err = trailOf.All(tx, a.Header.Get("X-Request-Id"))
				return err
			})
			if len(names) != 1 || names[0] != o.ID {
				t.Errorf("the trail has %v", names)
			}
		})
	}
}
