package op

import (
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// A page is ours by the configured address, the address that the request came to,
// or what a trusted proxy says of it.
func TestSameSiteBehindProxies(t *testing.T) {
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}
	const base = "https://y.example:8443"
	for _, c := range []struct {
		origin, host, peer, forwarded string
		same                          bool
	}{
		{"https://y.example:8443", "y.example", "192.0.2.1:5", "", true}, // the proxy drops the port
		{"https://Y.example:8443", "127.0.0.1:8080", "192.0.2.1:5", "", true},
		{"http://127.0.0.1:8080", "127.0.0.1:8080", "192.0.2.1:5", "", true},
		{"https://y.example", "y.example:8443", "192.0.2.1:5", "", false},
		{"http://y.example:8443", "y.example", "192.0.2.1:5", "", false},
		{"https://other.example", "inner", "10.1.2.3:5", "other.example", true},
		{"https://other.example", "inner", "10.1.2.3:5", "evil.example, other.example", true},
		{"https://evil.example", "inner", "10.1.2.3:5", "evil.example, other.example", false},
		{"https://other.example", "inner", "192.0.2.1:5", "other.example", false},
		{"null", "inner", "10.1.2.3:5", "", false},
	} {
		req := httptest.NewRequest("POST", "/auth/password", nil)
		req.Host, req.RemoteAddr = c.host, c.peer
		if c.forwarded != "" {
			req.Header.Set("X-Forwarded-Host", c.forwarded)
		}
		u, err := url.Parse(c.origin)
		if err != nil {
			t.Fatal(err)
		}
		if got := SameSite(u, req, base, trusted); got != c.same {
			t.Errorf("%+v: %t", c, got)
		}
	}
	req := httptest.NewRequest("POST", "/auth/password", nil)
	req.Host = "y.example"
	req.Header.Set("Origin", "https://y.example:9443")
	for _, want := range []string{"https://y.example:9443", "host y.example;", base, "base-url"} {
		if said := Came(req, base); !strings.Contains(said, want) {
			t.Errorf("no %q in %q", want, said)
		}
	}
}
