package config

import (
	"io"
	"strings"
	"testing"
)

// TestTLS holds which settings of the certificate go together, and what a refusal says.
func TestTLS(t *testing.T) {
	t.Parallel()
	const base = "https://yard.example.com"
	for _, c := range []struct{ flags, want string }{
		{"--tls-cert c.pem --tls-key k.pem", ""},
		{"--tls-cert c.pem --tls-key k.pem --base-url " + base, ""},
		{"--acme on --base-url " + base, ""},
		{"--acme https://ca.example/dir --acme-email ops@example.com --acme-listen :80 --base-url " + base, ""},
		{"--tls-cert c.pem", "go together"},
		{"--tls-cert c.pem --tls-key k.pem --base-url http://yard.example.com", "base-url (from --base-url): begins not with https://"},
		{"--tls-cert c.pem --tls-key k.pem --acme on --base-url " + base, "only one"},
		{"--acme on", "the name to certify is that of base-url"},
		{"--acme on --base-url https://192.0.2.1", "the name to certify is that of base-url"},
		{"--acme http://ca.example/dir --base-url " + base, "acme (from --acme)"},
		{"--acme on --acme-listen 80 --base-url " + base, "acme-listen (from --acme-listen)"},
		{"--acme on --acme-email ops --base-url " + base, "acme-email (from --acme-email)"},
		{"--acme-email ops@example.com", "of no use without acme"},
	} {
		flags := append([]string{"--data", t.TempDir()}, strings.Fields(c.flags)...)
		cfg, err := Load("test", flags, func(string) (string, bool) { return "", false }, io.Discard)
		switch {
		case c.want == "" && (err != nil || !cfg.SpeaksTLS()):
			t.Errorf("%s: %v", c.flags, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, not %q", c.flags, err, c.want)
		}
	}
	flags := []string{"--data", t.TempDir(), "--acme", "on", "--base-url", base}
	cfg, err := Load("test", flags, func(string) (string, bool) { return "", false }, io.Discard)
	if err != nil || cfg.ACME != LetsEncrypt || cfg.CertifiedHost() != "yard.example.com" {
		t.Errorf("%v, %+v", err, cfg)
	}
}
