package app

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"yardmaster/internal/api/mcp"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
)

// What one node takes away, another one that has just let it pass refuses: over REST,
// over MCP from then on, and in a stream that is open. Nothing is said to the other
// node. That it takes a second at most is held where the clock can be set, by the test
// of that name of signin, and by rest.TestStreamEndsWithItsCredential.
func TestRevokedOnEveryNode(t *testing.T) {
	t.Parallel()
	flags := []string{"--database", dbtest.DSN(t, db.Postgres), "--cluster", "on", "--blob", "off",
		"--master-key", strings.Repeat("ab", 32)}
	one := start(t, db.SQLite, flags...)
	two := boot(t, db.SQLite, flags...)
	bob, cem := one.person("bob", one.acct, policy.Member), one.person("cem", one.acct, policy.Member)
	var minted struct{ ID, Token string }
	decode(t, one.send("POST", "/v1/tokens", one.owner, `{"scopes": ["read:tasks"]}`).want(http.StatusCreated), &minted)
	reads := policy.Scopes(policy.ReadTasks)
	operator := one.operator()
	for name, c := range map[string]struct {
		token, method, path, by string
		status                  int
		slug                    string
	}{
		"token":  {minted.Token, "DELETE", "/v1/tokens/" + minted.ID, one.owner, 401, "unauthenticated"},
		"member": {one.mint(one.acct, &bob, reads, nil), "DELETE", "/v1/org/members/" + bob, one.owner, 401, "unauthenticated"},
		"user":   {one.mint(one.acct, &cem, reads, nil), "POST", "/v1/admin/users/" + cem + "/suspend", operator, 403, "missing-scope"},
	} {
		t.Run(name, func(t *testing.T) {
			one, two := &yard{App: one.App, t: t}, &yard{App: two.App, t: t}
			const call = `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "task.list", "arguments": {}}}`
			tool := func() string { return string(two.send("POST", mcp.Path, c.token, call).body) }
			if got := tool(); !strings.Contains(got, `"next_cursor"`) {
				t.Fatalf("before, over MCP: %s", got)
			}
			two.send("GET", "/v1/tasks", c.token, "").want(http.StatusOK)
			open, heard := make(chan struct{}), make(chan answer, 1)
			ready := sync.OnceFunc(func() { close(open) })
			go func() {
				heard <- two.hear("/v1/streams?topics=tasks", c.token, nil, func(a answer) bool {
					if a.StatusCode != http.StatusOK || bytes.Contains(a.body, []byte("event: ready")) {
						ready()
					}
					return false // to its end
				})
			}()
			patience.Ended(t, "the stream", open)
			one.send(c.method, c.path, c.by, "").want(http.StatusOK)
			patience.Until(t, "it reads no more over REST", func() bool {
				return two.send("GET", "/v1/tasks", c.token, "").StatusCode != http.StatusOK
			})
			two.send("GET", "/v1/tasks", c.token, "").problem(c.status, c.slug)
			got := tool()
			if strings.Contains(got, `"next_cursor"`) || !strings.Contains(got, c.slug) || !json.Valid([]byte(got)) {
				t.Errorf("over MCP: %s", got)
			}
			a := patience.Receive(t, "the end of the stream", heard)
			if !bytes.Contains(a.body, []byte("event: error")) || !bytes.Contains(a.body, []byte("problems/"+c.slug)) {
				t.Errorf("the stream ends with %s", a.body)
			}
		})
	}
}
