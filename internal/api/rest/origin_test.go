package rest

import (
	"net/http/httptest"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
)

// TestOwnPages holds that a page is one of ours by the configured addresses of the
// server, and that Host, which the sender chooses, counts only on this machine.
func TestOwnPages(t *testing.T) {
	const base = "https://y.example:8443"
	for _, c := range []struct {
		base, origin, host string
		own                bool
	}{
		{base, "https://y.example:8443", "y.example", true}, // the proxy drops the port
		{base, "https://Y.example:8443", "127.0.0.1:8080", true},
		{base, "https://also.example", "inner", true},
		{base, "https://also.example:443", "inner", true},
		{base, "http://also.example", "also.example", false},
		{base, "https://y.example", "y.example:8443", false},
		{base, "http://y.example:8443", "y.example:8443", false},
		{base, "https://evil.example", "evil.example", false},
		{base, "http://127.0.0.1:8080", "127.0.0.1:8080", false},
		{base, "null", "y.example:8443", false},
		{base, "", "", false},
		{base, "https://u@y.example:8443", "y.example:8443", false},
		{base, "https://y.example:8443/", "y.example:8443", false},
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080", "127.0.0.1:8080", true},
		{"http://127.0.0.1:8080", "http://localhost:8080", "localhost:8080", true},
		{"http://127.0.0.1:8080", "http://localhost:9000", "LOCALHOST:9000", true}, // through a tunnel
		{"http://localhost:8080", "http://[::1]:9000", "[::1]:9000", true},
		{"http://127.0.0.1:8080", "http://localhost:9000", "localhost:8080", false}, // another program's page
		{"http://127.0.0.1:8080", "http://evil.example:8080", "evil.example:8080", false},
		{"http://127.0.0.1:8080", "http://127.0.0.1.evil.example", "127.0.0.1.evil.example", false},
		{"http://127.0.0.1:8080", "http://192.0.2.7:8080", "192.0.2.7:8080", false},
		{"http://[::]:8080", "http://192.0.2.7:8080", "192.0.2.7:8080", true},
		{"http://0.0.0.0:8080", "http://localhost:8080", "localhost:8080", true},
		{"http://[::]:8080", "http://evil.example:8080", "evil.example:8080", false},
		{"http://[::]:8080", "http://192.0.2.7:8080", "192.0.2.8:8080", false},
	} {
		g := Config{Pipeline: &op.Pipeline{BaseURL: c.base}, Own: []string{"https://also.example"}}
		req := httptest.NewRequest("POST", "/auth/password", nil)
		req.Host = c.host
		req.Header.Set("X-Forwarded-Host", c.host)
		req.Header.Set("Origin", c.origin)
		if got := g.fromOwnPage(req); got != c.own {
			t.Errorf("%+v: %t", c, got)
		}
	}
	g := Config{Pipeline: &op.Pipeline{BaseURL: base}, Own: []string{"https://also.example"}}
	req := httptest.NewRequest("POST", "/auth/password", nil)
	req.Host = "y.example"
	req.Header.Set("Origin", "https://y.example:9443")
	for _, want := range []string{"https://y.example:9443", "host y.example;", base + ", https://also.example", "base-url", "own-origins"} {
		if said := g.came(req); !strings.Contains(said, want) {
			t.Errorf("no %q in %q", want, said)
		}
	}
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	if g.fromOwnPage(req) {
		t.Error("another site's page that calls itself the same")
	}
}
