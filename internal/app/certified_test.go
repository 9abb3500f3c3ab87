package app

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"yardmaster/internal/config"
	"yardmaster/internal/proof/acme"
	"yardmaster/internal/proof/patience"
)

// TestFewWithoutTLS: whoever opens connections without TLS, where nobody is served, holds few.
func TestFewWithoutTLS(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted := make(chan net.Conn, 40)
	go func() {
		for limited := fewAtOnce(l); ; {
			c, err := limited.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	var opened []net.Conn
	for range 40 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		opened = append(opened, c)
		defer patience.Receive(t, "the connection", accepted).Close()
	}
	for i, c := range opened[:40-16] {
		late, _ := patience.Context(t).Deadline()
		if err := c.SetReadDeadline(late); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("connection %d of 40 is open: %v", i, err)
		}
	}
}

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
		"--nats-tls", "acme", "--nats-url", "yard.example.com:4222", "--nats-listen", "127.0.0.1:0",
		"--acme", authority.Directory, "--acme-roots", authority.Trust}, func(string) (string, bool) { return "", false }, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan *App, 1), make(chan error, 1)
	go func() { ended <- Run(ctx, cfg, Options{Ready: func(a *App) { ready <- a }}) }()
	a := patience.Receive(t, "a server that answers", ready)
	if a.URL() != "https://yard.example.com" {
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
	bus := a.bus.Addr()[strings.LastIndex(a.bus.Addr(), "/")+1:]
	secure, err := tls.Dial("tcp", bus, &tls.Config{RootCAs: authority.Roots, ServerName: "yard.example.com"})
	if err != nil {
		t.Fatalf("boxes find the bus at %s, which is not certified: %v", bus, err)
	}
	secure.Close()
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
