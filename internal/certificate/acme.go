package certificate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/caddyserver/certmagic"
	"go.uber.org/zap"
)

// Authority is who certifies the server's name, and how it is answered.
type Authority struct {
	Directory, Email string
	Roots            string // file with what its own address is trusted by; empty: what the machine trusts
	Name             string // what is certified
	Base             string // where people are led to
	Folder           string // for keys and certificates
	Listen           string // the server's listener, which is port 443 of the name where there is no other way
	Plain            string // host:port of port 80 of the name; empty: nothing listens there
	Logger           *slog.Logger
	// Limited keeps the connections to Plain few.
	Limited func(net.Listener) net.Listener
}

// ACME is a certificate that an authority gives. It is kept in a folder, and renewed when a third of
// its time is left.
type ACME struct {
	Authority
	config *certmagic.Config
	issuer *certmagic.ACMEIssuer
	cache  *certmagic.Cache
}

// NewACME makes an ACME, which asks nobody before its Loop.
func NewACME(a Authority) (*ACME, error) {
	roots, err := a.roots()
	if err != nil {
		return nil, err
	}
	host, port, err := split(a.Listen)
	if err != nil {
		return nil, err
	}
	out := &ACME{Authority: a}
	logger := zap.New(core{a.Logger})
	out.cache = certmagic.NewCache(certmagic.CacheOptions{
		GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return out.config, nil }, Logger: logger,
	})
	out.config = certmagic.New(out.cache, certmagic.Config{
		Storage: &certmagic.FileStorage{Path: a.Folder}, Logger: logger, OnEvent: out.heard,
		DefaultServerName: a.Name, FallbackServerName: a.Name, // who asks by an address, as a check of health
		OCSP: certmagic.OCSPConfig{DisableStapling: true}, // which would ask yet another server
	})
	issuer := certmagic.ACMEIssuer{
		CA: a.Directory, TestCA: a.Directory, Email: a.Email, Agreed: true, TrustedRoots: roots, Logger: logger,
		ListenHost: host, AltTLSALPNPort: port, DisableHTTPChallenge: a.Plain == "", DisableTLSALPNChallenge: a.Plain != "",
	}
	if a.Plain != "" {
		if issuer.ListenHost, issuer.AltHTTPPort, err = split(a.Plain); err != nil {
			return nil, err
		}
	}
	out.issuer = certmagic.NewACMEIssuer(out.config, issuer)
	out.config.Issuers = []certmagic.Issuer{out.issuer}
	return out, nil
}

func split(address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	return host, port, err
}

func (a Authority) roots() (*x509.CertPool, error) {
	if a.Roots == "" {
		return nil, nil
	}
	text, err := os.ReadFile(a.Roots)
	if err != nil {
		return nil, fmt.Errorf("acme-roots: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("acme-roots: %s has no certificate in PEM", a.Roots)
	}
	return pool, nil
}

// heard says what became of a certificate.
func (a *ACME) heard(_ context.Context, event string, data map[string]any) error {
	switch event {
	case "cert_obtained":
		a.Logger.Info("the authority has certified the server", "name", data["identifier"], "renewal", data["renewal"])
	case "cert_failed":
		a.Logger.Error("the authority did not certify the server, and is asked again", "name", data["identifier"], "error", data["error"])
	}
	return nil
}

// TLS is how the listener speaks: HTTP/1.1, as without.
func (a *ACME) TLS() *tls.Config {
	c := a.config.TLSConfig()
	c.NextProtos = []string{"http/1.1", "acme-tls/1"}
	return c
}

// Loop asks the authority, again and again if need be, while the listener answers it.
func (a *ACME) Loop(ctx context.Context) error {
	defer a.cache.Stop()
	var plain *http.Server
	ended := make(chan error, 1)
	if a.Plain != "" {
		l, err := net.Listen("tcp", a.Plain)
		if err != nil {
			return fmt.Errorf("acme-listen: %w", err)
		}
		plain = &http.Server{Handler: a.issuer.HTTPChallengeHandler(http.HandlerFunc(a.lead)), ReadHeaderTimeout: 10 * time.Second,
			IdleTimeout: time.Minute, ErrorLog: slog.NewLogLogger(a.Logger.Handler(), slog.LevelDebug)}
		go func() { ended <- plain.Serve(a.Limited(l)) }()
		defer plain.Close()
	}
	if err := a.config.ManageAsync(ctx, []string{a.Name}); err != nil && ctx.Err() == nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}
}

// lead sends who came without TLS to the address of the server.
func (a *ACME) lead(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Connection", "close")
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		http.Error(w, "The server is at "+a.Base+".", http.StatusBadRequest)
		return
	}
	http.Redirect(w, req, a.Base+req.URL.RequestURI(), http.StatusMovedPermanently)
}
