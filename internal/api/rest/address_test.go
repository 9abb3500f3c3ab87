package rest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"yardmaster/internal/api/op"
	"yardmaster/internal/api/rest"
	"yardmaster/internal/policy"
)

// TestClientAddress holds that the address of a request is the one that the last
// trusted proxy reports, and that reports of others are ignored.
func TestClientAddress(t *testing.T) {
	var got string
	h := rest.Handler(rest.Config{Proxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}},
		[]op.Op{
			op.New(op.Row{ID: "item.get", Method: "GET", Path: "/v1/item", Rule: policy.Public()},
				func(ctx context.Context, _ op.None) (op.None, error) {
					got = op.RequestOf(ctx).IP
					return op.None{}, nil
				}),
		})
	const xff, fwd = "X-Forwarded-For", "Forwarded"
	for name, c := range map[string]struct {
		peer   string
		header []string
		want   string
	}{
		"no proxy":                      {"203.0.113.9:1", nil, "203.0.113.9"},
		"a stranger's word":             {"203.0.113.9:1", []string{xff, "198.51.100.1", fwd, "for=198.51.100.1"}, "203.0.113.9"},
		"a proxy that says nothing":     {"10.0.0.1:1", nil, "10.0.0.1"},
		"one proxy":                     {"10.0.0.1:1", []string{xff, "198.51.100.1"}, "198.51.100.1"},
		"two proxies":                   {"10.0.0.1:1", []string{xff, "198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
		"what the caller made up":       {"10.0.0.1:1", []string{xff, "192.0.2.66, 198.51.100.1"}, "198.51.100.1"},
		"made up, in a line of its own": {"10.0.0.1:1", []string{xff, "10.0.0.9", xff, "198.51.100.1"}, "198.51.100.1"},
		"nonsense next to the proxy":    {"10.0.0.1:1", []string{xff, "198.51.100.1, unknown"}, "10.0.0.1"},
		"nonsense beyond":               {"10.0.0.1:1", []string{xff, "x, 10.0.0.2"}, "10.0.0.2"},
		"with a port":                   {"10.0.0.1:1", []string{xff, "198.51.100.1:4711"}, "198.51.100.1"},
		"all inside":                    {"10.0.0.1:1", []string{xff, "10.3.3.3, 10.0.0.2"}, "10.3.3.3"},
		"forwarded": {"10.0.0.1:1", []string{fwd, `for=192.0.2.66;proto=https, For="198.51.100.1:80";by=10.0.0.1`},
			"198.51.100.1"},
		"forwarded, IPv6":                  {"[2001:db8:1::1]:1", []string{fwd, `for="[2001:db8:2::7]:80"`}, "2001:db8:2::7"},
		"forwarded, hidden":                {"10.0.0.1:1", []string{fwd, "for=_secret"}, "10.0.0.1"},
		"forwarded, without for":           {"10.0.0.1:1", []string{fwd, "for=198.51.100.1, proto=https"}, "10.0.0.1"},
		"both, and they agree":             {"10.0.0.1:1", []string{fwd, "for=198.51.100.1", xff, "198.51.100.1"}, "198.51.100.1"},
		"both, and one is the caller's":    {"10.0.0.1:1", []string{fwd, "for=192.0.2.66", xff, "198.51.100.1"}, "10.0.0.1"},
		"an IPv4 address in IPv6 clothing": {"[::ffff:10.0.0.1]:1", []string{xff, "::ffff:198.51.100.1"}, "198.51.100.1"},
	} {
		req := httptest.NewRequest("GET", "/v1/item", nil)
		req.RemoteAddr = c.peer
		for i := 0; i+1 < len(c.header); i += 2 {
			req.Header.Add(c.header[i], c.header[i+1])
		}
		h.ServeHTTP(httptest.NewRecorder(), req)
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func anonymous(context.Context, op.Presented) (policy.Actor, error) { return policy.Actor{}, nil }

// TestScriptsOfOtherSites holds that scripts of any site may call the rows with
// AnyOrigin, without cookies, and no others, and that browsers let them read refusals,
// too.
func TestScriptsOfOtherSites(t *testing.T) {
	done := func(context.Context, op.None) (op.None, error) { return op.None{}, nil }
	h := rest.Handler(rest.Config{Pipeline: &op.Pipeline{Authenticate: anonymous}}, []op.Op{
		op.New(op.Row{ID: "open.get", Method: "GET", Path: "/open", Rule: policy.Public(), AnyOrigin: true}, done),
		op.New(op.Row{ID: "open.post", Method: "POST", Path: "/open", Rule: policy.PerRequest(), AnyOrigin: true}, done),
		op.New(op.Row{ID: "own.get", Method: "GET", Path: "/own", Rule: policy.Public()}, done),
	})
	ask := func(method, path string) *http.Response {
		req := httptest.NewRequest(method, path, nil)
		req.Header.Set("Origin", "https://elsewhere.example")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		return w.Result()
	}
	for _, c := range []struct {
		method, path string
		status       int
		open         bool
	}{
		{"GET", "/open", 200, true}, {"POST", "/open", 401, true}, {"OPTIONS", "/open", 200, true}, {"PUT", "/open", 405, true},
		{"GET", "/own", 200, false}, {"OPTIONS", "/own", 405, false}, {"OPTIONS", "/nothing", 404, false},
	} {
		r := ask(c.method, c.path)
		origin := r.Header.Get("Access-Control-Allow-Origin")
		if r.StatusCode != c.status || (origin == "*") != c.open || !c.open && origin != "" ||
			r.Header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s %s: %d for origin %q", c.method, c.path, r.StatusCode, origin)
		}
	}
	r := ask("OPTIONS", "/open")
	if got := r.Header.Get("Access-Control-Allow-Methods"); got != "GET, HEAD, POST" {
		t.Errorf("methods %q", got)
	}
	if got := r.Header.Get("Access-Control-Allow-Headers"); !strings.Contains(got, "Authorization") ||
		!strings.Contains(got, "Mcp-Protocol-Version") {
		t.Errorf("headers %q", got)
	}
}
