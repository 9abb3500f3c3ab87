package app

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"yardmaster/internal/config"
	"yardmaster/internal/db/dbtest"
)

// TestEgress has people name addresses, and reads where the server connects to then, by what it is
// set to.
func TestEgress(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e, "--allow-networks", "10.1.0.0/16")
			say := func(setting func(*config.Config)) string {
				t.Helper()
				cfg := *y.cfg
				setting(&cfg)
				out := new(bytes.Buffer)
				if err := Egress(t.Context(), &cfg, out); err != nil {
					t.Fatal(err)
				}
				return out.String()
			}
			is := func(said string, lines ...string) {
				t.Helper()
				for _, want := range lines {
					if !regexp.MustCompile(`(?m)^` + strings.ReplaceAll(want, " ", `\s+`)).MatchString(said) {
						t.Errorf("%s is not said:\n%s", want, said)
					}
				}
			}
			if said := say(func(*config.Config) {}); strings.Contains(said, "https://") {
				t.Errorf("nobody has named anything:\n%s", said)
			}
			y.send("POST", "/v1/webhooks", y.owner, `{"name": "out", "url": "https://93.184.215.14/hush"}`).want(201)
			y.send("POST", "/v1/webhooks", y.owner, `{"name": "in", "url": "http://10.1.0.7:9000/hush"}`).want(201)
			y.send("PUT", "/v1/me/notification-webhook", y.owner, `{"url": "https://93.184.215.15/hush"}`).want(200)
			open, shut := say(func(*config.Config) {}), say(func(c *config.Config) { c.AirGapped = "on" })
			is(open, `https://93.184.215.14/… webhooks webhooks yes`, `https://93.184.215.15/… webhooks webhooks yes`,
				`http://10.1.0.7:9000/… webhooks webhooks yes`, `People may name more: any address of the public network`)
			is(shut, `https://93.184.215.14/… webhooks webhooks no`, `https://93.184.215.15/… webhooks webhooks no`,
				`http://10.1.0.7:9000/… webhooks webhooks yes`, `air-gapped is on`, `.*10\.1\.0\.0/16`)
			is(say(func(c *config.Config) { c.GitHubID, c.OTLPEndpoint = "id", "https://otlp.example.com" }),
				`https://github.com code and sign-in the setting github-url yes`,
				`https://api.github.com code and sign-in the setting github-url yes`,
				`https://otlp.example.com traces the setting otlp-endpoint yes`)
			if strings.Contains(open+shut, "hush") {
				t.Error("a secret is shown")
			}
		})
	}
}

// TestAirGap: whatever a person names is refused where it lies in the public network, and no road of
// the server leads there.
func TestAirGap(t *testing.T) {
	t.Parallel()
	y := start(t, dbtest.Engines()[0], "--air-gapped", "on", "--allow-networks", "10.1.0.0/16")
	for _, c := range [][4]string{
		{"url", "POST", "/v1/webhooks", `{"name": "out", "url": "https://1.1.1.1/x"}`},
		{"url", "PUT", "/v1/me/notification-webhook", `{"url": "https://1.1.1.1/x"}`},
		{"url", "PUT", "/v1/billing/log-sink", `{"kind": "https", "url": "https://1.1.1.1/x"}`},
		{"base_url", "POST", "/v1/billing/keys", `{"provider": "compatible", "key": "sk-abcdefghijklmnop", "model": "m", "base_url": "https://1.1.1.1/v1"}`},
	} {
		refused(t, y.send(c[1], c[2], y.owner, c[3]).problem(400, "invalid"), c[0])
	}
	y.send("POST", "/v1/webhooks", y.owner, `{"name": "in", "url": "http://10.1.0.7:9000/x"}`).want(201)
	if err := (githubs{y.App}).Judge(t.Context(), "https://github.com"); err == nil {
		t.Error("github.com, which no setting names, can be connected")
	}
	roads := map[string]http.RoundTripper{"to services": y.road(), "to code hosts": y.hostRoads()}
	for name, road := range roads {
		for _, at := range []string{"https://1.1.1.1/", "https://github.com/", "https://api.github.com/"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
			if err != nil {
				t.Fatal(err)
			}
			if resp, err := road.RoundTrip(req); err == nil {
				resp.Body.Close()
				t.Errorf("the road %s leads to %s", name, at)
			}
		}
	}
	for name, control := range map[string]func(*App) error{
		"guard":      func(a *App) error { return a.guard().Control("tcp4", "1.1.1.1:443", nil) },
		"modelGuard": func(a *App) error { return a.modelGuard().Control("tcp4", "1.1.1.1:443", nil) },
		"hostGuard":  func(a *App) error { return a.hostGuard().Control("tcp4", "1.1.1.1:443", nil) },
	} {
		if control(y.App) == nil {
			t.Errorf("%s lets the public network be connected to", name)
		}
	}
}
