package arch

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestProxyExample holds that the manual's example of a proxy works as written: a
// proxy that listens with TLS has a certificate and its key.
func TestProxyExample(t *testing.T) {
	b, err := os.ReadFile("../../../docs/proxies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "```nginx\n")
	conf, _, ok := strings.Cut(rest, "```")
	if !ok || !strings.Contains(conf, "listen 443 ssl;") {
		t.Fatalf("the manual has no nginx with TLS:\n%s", conf)
	}
	for _, name := range []string{"ssl_certificate", "ssl_certificate_key", "server_name"} {
		if !regexp.MustCompile(`(?m)^\s*` + name + `\s+\S+;$`).MatchString(conf) {
			t.Errorf("nginx would not start without %s:\n%s", name, conf)
		}
	}
}
