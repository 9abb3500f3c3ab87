package certificate

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	authority "yardmaster/internal/proof/acme"
	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
)

const name = "yard.example.com"

// written puts a certificate for name and its key into two files, at a time that differs for each n.
func written(t *testing.T, folder string, n int64) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(n), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, is, is, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		at := time.Unix(1_800_000_000+n, 0)
		if err := errors.Join(os.WriteFile(path, pem.EncodeToMemory(block), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// listening serves with the certificates of a source.
func listening(t *testing.T, l net.Listener, config *tls.Config) {
	t.Helper()
	server := &http.Server{Handler: http.NotFoundHandler(), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)}
	go func() { _ = server.Serve(tls.NewListener(l, config)) }()
	t.Cleanup(func() { server.Close() })
}

// shown is the certificate that a client for a name is shown.
func shown(address, of string, trust *x509.CertPool) (*x509.Certificate, error) {
	conn, err := tls.Dial("tcp", address, &tls.Config{ServerName: of, RootCAs: trust, InsecureSkipVerify: trust == nil})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.ConnectionState().PeerCertificates[0], nil
}

// TestFiles holds that new files are shown without a restart, and that half of them is not.
func TestFiles(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	cert, key := written(t, folder, 1)
	config, err := FileTLS(cert, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listening(t, l, config)
	serial := func() int64 {
		t.Helper()
		is, err := shown(l.Addr().String(), name, nil)
		if err != nil {
			t.Fatal(err)
		}
		return is.SerialNumber.Int64()
	}
	before := serial()
	written(t, folder, 2)
	after := serial()
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	if without := serial(); before != 1 || after != 2 || without != 2 {
		t.Errorf("%d, then %d, without a key %d", before, after, without)
	}
	if _, err := FileTLS(cert, key, nil); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("without a key: %v", err)
	}
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }

// free is a port that nothing listens at, and that nobody else gets.
func free(t *testing.T) int {
	t.Helper()
	at, err := netip.ParseAddrPort(loopback.Address())
	if err != nil {
		t.Fatal(err)
	}
	return int(at.Port())
}

// log keeps what is logged.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), s)
}

func (l *lines) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// node is a server that asks an authority, and is at port 443 for that.
type node struct {
	name           string // its own: challenges under way are kept by name in the whole process
	address, plain string
	log            *lines
	stop           func()
}

func start(t *testing.T, name string, l net.Listener, a *authority.Authority, folder string, plain int) node {
	t.Helper()
	n := node{name: name, address: l.Addr().String(), log: &lines{}}
	if plain != 0 {
		n.plain = "127.0.0.1:" + strconv.Itoa(plain)
	}
	s, err := NewACME(Authority{Directory: a.Directory, Roots: a.Trust, Email: "ops@example.com", Name: name, Base: "https://" + name,
		Folder: folder, Listen: n.address, Plain: n.plain, Logger: slog.New(slog.NewTextHandler(n.log, nil)),
		Limited: func(l net.Listener) net.Listener { fmt.Fprintln(n.log, "limited:", l.Addr()); return l }})
	if err != nil {
		t.Fatal(err)
	}
	listening(t, l, s.TLS())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Loop(ctx) }()
	n.stop = func() {
		cancel()
		if err := patience.Receive(t, "the end of the loop", ended); err != nil {
			t.Errorf("the loop: %v", err)
		}
		l.Close()
	}
	return n
}

// TestACME has a real authority certify the name of a listener, over TLS and over plain HTTP, and
// starts again while the authority is away.
func TestACME(t *testing.T) {
	t.Parallel()
	for _, over := range []string{"tls-alpn-01", "http-01"} {
		t.Run(over, func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", loopback.Address()) // where a second server listens after it
			if err != nil {
				t.Fatal(err)
			}
			plain, at := 0, free(t)
			if over == "http-01" {
				plain = at
			}
			a := authority.New(t, at, port(l))
			folder := t.TempDir()
			name := over + ".example.com"
			n := start(t, name, l, a, folder, plain)
			certified := func(n node) {
				t.Helper()
				patience.Until(t, "the authority certifies", func() bool {
					_, err := shown(n.address, name, a.Roots)
					return err == nil
				})
				if is, err := shown(n.address, "", nil); err != nil || is.VerifyHostname(name) != nil {
					t.Errorf("who names no host: %v", err)
				}
			}
			certified(n)
			if plain != 0 {
				leads(t, n)
				if !n.log.has("limited: " + n.plain) {
					t.Error("as many connections without TLS as come")
				}
			}
			orders := a.Orders.Load()
			n.stop()
			a.Close()
			again, err := net.Listen("tcp", n.address)
			if err != nil {
				t.Fatal(err)
			}
			second := start(t, name, again, a, folder, plain)
			certified(second)
			second.stop()
			if orders != 1 || a.Orders.Load() != 1 {
				t.Errorf("%d orders, then %d; the first server says:\n%s", orders, a.Orders.Load(), n.log.all())
			}
		})
	}
}

// leads holds that who comes without TLS is sent to the server's address, and nowhere else.
func leads(t *testing.T, n node) {
	t.Helper()
	c := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := c.Get("http://" + n.plain + "/ui/tasks?state=open")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusMovedPermanently || to != "https://"+n.name+"/ui/tasks?state=open" {
		t.Errorf("%s to %q", resp.Status, to)
	}
	resp, err = c.Post("http://"+n.plain+"/v1/tasks", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(text), "https://"+n.name) {
		t.Errorf("a call without TLS: %s: %s", resp.Status, text)
	}
}

// TestRefusal holds that the log says why there is no certificate: here the name leads elsewhere.
func TestRefusal(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := authority.New(t, free(t), free(t))
	n := start(t, "elsewhere.example.com", l, a, t.TempDir(), 0)
	patience.Until(t, "the log says why", func() bool {
		return n.log.has("the authority did not certify the server") && n.log.has("tls-alpn-01 challenge")
	})
	n.stop()
}
