package app

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/api/limit/redistest"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/patience"
)

// Nodes with one Redis count together and report its health; without it each
// serves on alone.
func TestNodesShareLimits(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	y := start(t, db.SQLite, "--rate-limits", "on", "--redis", redis.URL())
	y.send("GET", "/healthz", "", "").want(http.StatusOK)

	// A busy machine may take longer than a request waits for a count.
	c := redis.Client()
	patience.Until(t, "a request is counted by Redis", func() bool {
		a := y.send("GET", "/v1/me", y.owner, "").want(http.StatusOK)
		keys, err := c.Keys(t.Context(), "yardmaster:limit|reads|*").Result()
		if err != nil {
			t.Fatal(err)
		}
		if len(keys) == 1 && a.Header.Get("RateLimit-Limit") != "600" {
			t.Errorf("headers %v", a.Header)
		}
		return len(keys) == 1
	})

	redis.Stop()
	var health struct {
		Checks map[string]struct{ Status string }
	}
	decode(t, y.send("GET", "/healthz", "", "").want(http.StatusServiceUnavailable), &health)
	if health.Checks["cache"].Status != "failed" || health.Checks["database"].Status != "ok" {
		t.Errorf("health without Redis: %+v", health)
	}
	a := y.send("GET", "/v1/me", y.owner, "").want(http.StatusOK)
	if a.Header.Get("RateLimit-Limit") != "600" || a.Header.Get("RateLimit-Remaining") == "" {
		t.Errorf("headers without Redis: %v", a.Header)
	}
}

// TestTailOnEveryNode holds that who follows a run on one node hears of what
// another node has stored.
func TestTailOnEveryNode(t *testing.T) {
	t.Parallel()
	flags := []string{"--database", dbtest.DSN(t, db.Postgres), "--cluster", "on", "--blob", "off",
		"--master-key", strings.Repeat("cd", 32)}
	one := start(t, db.SQLite, flags...)
	two := boot(t, db.SQLite, flags...)
	at := one.seed(one.acct, "acme")
	revoked := false
	a := two.hear("/v1/fleet/runs/"+at["runId"]+"/events", one.owner, nil, func(answer) bool {
		if !revoked { // the head of the stream is here
			revoked = true
			one.send("POST", "/v1/runners/"+at["box"]+"/revoke", one.owner, "").want(http.StatusOK)
		}
		return false // to its end
	})
	if !bytes.Contains(a.body, []byte("event: end")) {
		t.Errorf("heard %d %s", a.StatusCode, a.body)
	}
}
