// Package acme is an authority that certifies names by ACME, for tests: Pebble, in the process of
// the test. Each name is an address of this machine to it.
package acme

import (
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
)

// Authority is one that runs.
type Authority struct {
	Directory string         // its address
	Trust     string         // file with the certificate that the address is trusted by
	Roots     *x509.CertPool // what the certificates that it gives are trusted by
	Orders    atomic.Int64   // how often it was asked for one
	server    *httptest.Server
}

// prompt has Pebble answer at once and refuse nothing by chance, which it reads from the environment.
var prompt = sync.OnceFunc(func() {
	for name, value := range map[string]string{"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
})

// New starts an authority, which looks for the answers to its challenges at two ports of 127.0.0.1.
func New(t *testing.T, plain, secure int) *Authority {
	t.Helper()
	prompt()
	a := &Authority{Trust: filepath.Join(t.TempDir(), "trust.pem"), Roots: x509.NewCertPool()}
	quiet := log.New(io.Discard, "", 0)
	store := db.NewMemoryStore()
	signer := ca.New(quiet, store, "", "ecdsa", 0, 1, map[string]ca.Profile{"default": {Description: "for tests"}})
	judge := va.New(quiet, plain, secure, true, resolver(t), store)
	front := wfe.New(quiet, store, judge, signer, []string{"pebble.example"}, true, false, 1, 1)
	api := front.Handler()
	a.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/order-plz") {
			a.Orders.Add(1)
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	a.Directory = a.server.URL + wfe.DirectoryPath
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})
	if err := os.WriteFile(a.Trust, text, 0o600); err != nil {
		t.Fatal(err)
	}
	root := httptest.NewRecorder()
	front.ManagementHandler().ServeHTTP(root, httptest.NewRequest(http.MethodGet, wfe.RootCertPath+"0", nil))
	if !a.Roots.AppendCertsFromPEM(root.Body.Bytes()) {
		t.Fatal("the authority has no root:", root.Body)
	}
	return a
}

// Close ends it.
func (a *Authority) Close() { a.server.Close() }

// resolver answers 127.0.0.1 to each question for an address. Pebble asks over TCP.
func resolver(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{Listener: l, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		m := new(dns.Msg).SetReply(q)
		if q.Question[0].Qtype == dns.TypeA {
			if rr, err := dns.NewRR(q.Question[0].Name + " 1 IN A 127.0.0.1"); err == nil {
				m.Answer = []dns.RR{rr}
			}
		}
		_ = w.WriteMsg(m) // who asked is gone
	})}
	go func() { _ = s.ActivateAndServe() }()
	t.Cleanup(func() { _ = s.Shutdown() })
	return l.Addr().String()
}
