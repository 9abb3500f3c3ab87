package secretscan

import (
	"strings"
	"testing"

	"yardmaster/internal/id"
)

func TestFound(t *testing.T) {
	for _, s := range []string{
		"ghp_" + strings.Repeat("a1B2", 9),
		"use AKIAIOSFODNN7EXAMPLE here",
		"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
		"postgres://app:hunter22@db/prod",
		"password: hunter2hunter2",
		`API_KEY="9f8e7d6c5b4a"`,
		"eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.c2ln",
		"sk-ant-REDACTED",
		"the key is hG7kQ2vX9pL4mZ8rT1wY6bN3cJ5f",
		id.Secret(id.PAT), id.Opaque(),
	} {
		if !Found(s) {
			t.Errorf("not found in %q", s)
		}
		if strings.Contains(s, "hG7k") || len(s) == 43 {
			continue // Scrub takes out only what has a known shape
		}
		if got := Scrub(s); got == s || !strings.Contains(got, Mark) {
			t.Errorf("%q is scrubbed to %q", s, got)
		}
	}
	for _, s := range []string{
		"", "Use tabs, and never print a token: instead, name it.",
		"commit 3f786850e387550fdab836ed7e6dc881de23001b of main",
		"2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae",
		"see internal/domain/blocker/testdata/blocker.txtar and TestTheLongNameOfATestThatIsNoSecretAtAll",
		"https://example.com/a/very/long/path/that-goes-on-and-on-and-on-without-end?x=1",
		"f47ac10b-58cc-4372-a567-0e02b2c3d479", "password: see the vault", "secret=$STRIPE_KEY",
	} {
		if Found(s) {
			t.Errorf("found in %q", s)
		}
	}
}

func TestScrub(t *testing.T) {
	for _, secret := range []string{
		"dev_pat_0abcDEF", "ghp_0123456789abcdefghij", "sk-proj-0123456789abcdef", "AKIAABCDEFGHIJKLMNOP",
		"-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "hunter22pass",
	} {
		text := "use " + secret + " here"
		if secret == "hunter22pass" {
			text = "password: " + secret + " and https://bob:" + secret + "@example.com"
		}
		if got := Scrub(text); strings.Contains(got, secret) || !strings.Contains(got, Mark) {
			t.Errorf("Scrub(%q) = %q", text, got)
		}
	}
	if plain := "Rename the token field in api.go; keep tests green."; Scrub(plain) != plain {
		t.Errorf("Scrub changed %q to %q", plain, Scrub(plain))
	}
}
