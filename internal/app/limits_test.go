package app

import (
	"net/http"
	"testing"

	"yardmaster/internal/db"
)

// The limits that the contract gives single paths, each in a bucket of its own.
func TestPathsWithLimits(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite, "--rate-limits", "on")
	for _, c := range []struct {
		method, path string
		most, status int
	}{
		{"GET", "/v1/openapi.json", 30, 200},
		{"POST", "/v1/runners/enroll", 60, 400},
		{"POST", "/v1/runners/creds/reissue", 60, 401},
		{"POST", "/v1/runners/hardening", 60, 401},
		{"POST", "/auth/password", 30, 400},
		{"POST", "/auth/email", 30, 400},
		{"POST", "/auth/email/verify", 30, 400},
		{"GET", "/auth/oidc/nobody/start", 60, 404},
	} {
		for range c.most {
			y.send(c.method, c.path, "", "").want(c.status)
		}
		a := y.send(c.method, c.path, "", "")
		a.problem(http.StatusTooManyRequests, "rate-limited")
		if a.Header.Get("Retry-After") == "" || a.Header.Get("RateLimit-Limit") != "" {
			t.Errorf("%s: headers %v", c.path, a.Header)
		}
	}
	a := y.send("GET", "/v1/me", y.owner, "").want(200)
	if a.Header.Get("RateLimit-Limit") != "600" || a.Header.Get("RateLimit-Remaining") == "" || a.Header.Get("RateLimit-Reset") == "" {
		t.Errorf("headers behind the guard: %v", a.Header)
	}
}
