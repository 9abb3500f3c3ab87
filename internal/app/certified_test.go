package app

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"yardmaster/internal/config"
	"yardmaster/internal/proof/acme"
	"yardmaster/internal/proof/patience"
)

// TestServerGetsItsCertificate has a server be certified by a real authority over its own listener,
// and asks it over TLS alone: requests without it are refused.
func TestServerGetsItsCertificate(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen := l.Addr().String()
	authority := acme.New(t, 1, l.Addr().(*net.TCPAddr).Port)
	l.Close()
	cfg, err := config.Load("test", []string{"--data", t.TempDir(), "--listen", listen, "--base-url", "https://yard.example.com",
		"--acme", authority.Directory, "--acme-roots", authority.Trust}, func(string) (string, bool) { return "", false }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan *App, 1), make(chan error, 1)
	go func() { ended <- Run(ctx, cfg, Options{Ready: func(a *App) { ready <- a }}) }()
	if a := patience.Receive(t, "a server that answers", ready); a.URL() != "https://yard.example.com" {
		t.Errorf("it calls itself %s", a.URL())
	}
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authority.Roots},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, listen)
		},
	}}
	patience.Until(t, "an answer over TLS", func() bool {
		resp, err := client.Get("https://yard.example.com/readyz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	resp, err := http.Get("http://" + listen + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "HTTPS") {
		t.Errorf("without TLS: %s: %s", resp.Status, text)
	}
	client.CloseIdleConnections()
	cancel()
	if err := patience.Receive(t, "its end", ended); err != nil {
		t.Error(err)
	}
}
