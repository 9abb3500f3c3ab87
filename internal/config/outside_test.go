package config

import (
	"io"
	"slices"
	"strings"
	"testing"
)

func TestOutside(t *testing.T) {
	t.Parallel()
	of := func(args ...string) (all []string) {
		t.Helper()
		c, err := Load("serve", append([]string{"--data", t.TempDir()}, args...), environment(nil), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range c.Outside() {
			all = append(all, o.Setting+" "+o.Address)
		}
		return all
	}
	if got := of(); len(got) != 0 {
		t.Errorf("nothing is set, and there is %v", got)
	}
	got := of("--database", "postgres://yard:hush@db.example.com:5432/yard?sslmode=require", "--blob", "s3://AK:hush@s3.example.com/objects",
		"--redis", "rediss://:hush@redis.example.com:6380/0", "--smtp-url", "smtp://u:hush@mail.example.com:587",
		"--otlp-endpoint", "https://otlp.example.com", "--audit-heads-webhook", "https://heads.example.com/hush",
		"--acme", "on", "--base-url", "https://yard.example.com", "--acme-listen", "0.0.0.0:80",
		"--stripe-secret-key", "sk_hush", "--stripe-webhook-secret", "hush", "--stripe-seat-price", "price_1")
	want := []string{"database postgres://db.example.com:5432", "blob s3://s3.example.com", "redis rediss://redis.example.com:6380",
		"smtp-url smtp://mail.example.com:587", "otlp-endpoint https://otlp.example.com", "audit-heads-webhook https://heads.example.com",
		"acme https://acme-v02.api.letsencrypt.org", "stripe-url https://api.stripe.com"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if strings.Contains(strings.Join(got, " "), "hush") {
		t.Error("a secret is shown")
	}
}

func TestOutsideIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range [][]string{
		{"--air-gapped", "yes"}, {"--profile-listen", "6060"}, {"--profile-listen", ":6060"}, {"--profile-listen", "0.0.0.0:6060"},
		{"--profile-listen", "10.0.0.1:6060"}, {"--profile-listen", "127.0.0.1:8080", "--listen", "127.0.0.1:8080"},
		{"--profile-listen", "127.0.0.1:9464", "--metrics-listen", "127.0.0.1:9464"},
	} {
		_, err := Load("serve", append([]string{"--data", t.TempDir()}, c...), environment(nil), io.Discard)
		if err == nil || !strings.Contains(err.Error(), c[0][2:]) {
			t.Errorf("%v: %v", c, err)
		}
	}
	for _, at := range []string{"127.0.0.1:6060", "localhost:0", "[::1]:6060"} {
		if _, err := Load("serve", []string{"--data", t.TempDir(), "--profile-listen", at}, environment(nil), io.Discard); err != nil {
			t.Error(err)
		}
	}
}
