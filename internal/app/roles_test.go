package app

import (
	"net/http"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/quota"
)

// A node does what its role says, and no more.
func TestRoles(t *testing.T) {
	t.Parallel()
	const git = "/git/acme/web.git/info/refs?service=git-upload-pack"
	const models = "/gateway/v1/models"
	for _, c := range []struct {
		role             string
		api, git, models int
	}{
		{"api", 401, 401, 404},
		{"gateway", 404, 404, 401},
		{"loops", 404, 404, 404},
	} {
		t.Run(c.role, func(t *testing.T) {
			t.Parallel()
			y := boot(t, db.SQLite, "--role", c.role)
			y.send("GET", "/v1/tasks", "", "").want(c.api)
			y.send("GET", git, "", "").want(c.git)
			y.send("GET", models, "", "").want(c.models)
			for _, path := range []string{"/healthz", "/readyz"} {
				y.send("GET", path, "", "").want(http.StatusOK)
			}
		})
	}
}

// What an account sends to a node without the role of loops is written down, too: other nodes judge
// by it, and this one would count it again with what is on record.
func TestSentToANodeWithoutLoops(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--role", "api")
	y.send("PUT", "/v1/admin/accounts/"+y.acct+"/quota", y.operator(), `{"confirm": true, "record_bytes": 1000000000}`).want(200)
	y.send("PUT", "/v1/account/zone", y.owner, `{"zone": "Europe/Berlin"}`).want(200)
	y.rig().Eventually("what was sent is counted", func() bool {
		_, used := y.quotas(y.owner, "/v1/account/quota")
		return used[quota.RecordBytes] > 0
	})
}
