// Package broker lets an agent use secrets that it cannot read. It is an HTTP
// server on the box that a sandbox reaches: a request to
//
//	<address>/<token of the run>/<host>/<path>?<query>
//
// goes on to https://<host>/<path>?<query> with the run's credential for that
// host set, and no other host is served. What comes back is searched for the
// run's secrets, in all the forms that agents print them in, before the agent
// sees it; what cannot be searched (a part of an answer, a compressed one, one
// in UTF-16) is asked for otherwise or refused. Redirects are never followed: one to the same
// host leads back here, one elsewhere is refused.
//
// Secrets that the agent may read are to be had at <address>/<token>/-/env, as
// lines for a shell, so that one that a person supplied while the agent waited
// is there without a restart and on no disk.
package broker

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"yardmaster/internal/box/gate"
	"yardmaster/internal/box/scrub"
)

// Credential is a secret for hosts.
type Credential struct {
	Hosts  []string // host, or host:port unless it is 443
	Header string
	Value  string // of the header, whole
}

// Secrets are what a run may use.
type Secrets struct {
	Env         map[string]string
	Credentials []Credential
}

// Run is a run that may use the broker, from Register to Unregister.
type Run struct {
	Token string // what the agent is given; worth nothing anywhere else
	// Secrets answers what there is. Fresh demands what there is now, which the
	// answer may still bound to once in a while.
	Secrets  func(ctx context.Context, fresh bool) (Secrets, error)
	Scrubber *scrub.Scrubber // knows every secret before Secrets answers it
}

// Config is what a broker is made of. Logger is required.
type Config struct {
	Logger *slog.Logger
	Roots  *x509.CertPool // nil: the system's
	// Private lists addresses and prefixes that may be dialled though they are
	// not public; what is no address is passed over.
	Private []string
}

// Broker is the server. It serves any number of listeners.
type Broker struct {
	log       *slog.Logger
	gate      *gate.Gate[Run]
	transport *http.Transport
}

// New makes a broker that knows no run yet.
func New(c Config) *Broker {
	var private []netip.Prefix
	for _, text := range c.Private {
		if addr, err := netip.ParseAddr(text); err == nil {
			private = append(private, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
		} else if p, err := netip.ParsePrefix(text); err == nil {
			private = append(private, p)
		}
	}
	dialer := gate.Dialer(func(addr netip.Addr, _ uint16) bool {
		return slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(addr) })
	})
	return &Broker{log: c.Logger, gate: gate.New[Run](c.Logger), transport: &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true, DisableCompression: true, TLSHandshakeTimeout: 10 * time.Second,
		ResponseHeaderTimeout: 2 * time.Minute, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 256 << 10,
	}}
}

// Serve serves a listener. It returns http.ErrServerClosed after Close.
func (b *Broker) Serve(l net.Listener) error { return b.gate.Serve(l, b) }

// Close ends every listener and request.
func (b *Broker) Close() {
	b.gate.Close()
	b.transport.CloseIdleConnections()
}

// Register lets a run in. It refuses a run that lacks a part, and a token that
// another run has.
func (b *Broker) Register(r Run) error {
	if r.Token == "" || r.Secrets == nil || r.Scrubber == nil {
		return errors.New("broker: a run needs a token, secrets and a scrubber")
	}
	if err := b.gate.Admit(r.Token, r); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return nil
}

// Unregister shuts a run out and cuts its requests.
func (b *Broker) Unregister(token string) { b.gate.Dismiss(token) }

// ServeHTTP serves a sandbox.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	pass := b.gate.Find(token)
	if pass == nil {
		http.Error(w, "This is not the token of a run on this box.", http.StatusForbidden)
		return
	}
	ctx, cancel := pass.Bound(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	if rest == "-/env" {
		pass.Run.env(w, r)
		return
	}
	host, path, deep := strings.Cut(rest, "/")
	base := "./" + host
	if deep {
		base = "." + strings.Repeat("/..", strings.Count(path, "/"))
	}
	b.pass(w, r, &pass.Run, strings.TrimSuffix(strings.ToLower(host), ":443"), "/"+path, base)
}

// env writes the secrets that the agent may read.
func (s *Run) env(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		http.Error(w, "This takes GET.", http.StatusMethodNotAllowed)
		return
	}
	have, err := s.Secrets(r.Context(), true)
	if err != nil {
		http.Error(w, "The secrets cannot be had now.", http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	names := make([]string, 0, len(have.Env))
	for name := range have.Env {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(w, "export %s='%s'\n", name, strings.ReplaceAll(have.Env[name], "'", `'\''`))
	}
}

// headers answers what to set on a request to host, nil if nothing is for it.
func (s *Run) headers(ctx context.Context, host string) (http.Header, error) {
	for _, fresh := range []bool{false, true} {
		have, err := s.Secrets(ctx, fresh)
		if err != nil {
			return nil, err
		}
		out := http.Header{}
		for _, c := range have.Credentials {
			if slices.Contains(c.Hosts, host) && out.Get(c.Header) == "" {
				s.Scrubber.Add(decoded(c.Value)...)
				out.Set(c.Header, c.Value)
			}
		}
		if len(out) > 0 {
			return out, nil
		}
	}
	return nil, nil
}

// dropped are headers of a request that would make an answer one that cannot
// be searched, and those that a reverse proxy keeps for a change of protocol.
var dropped = []string{"Connection", "Upgrade", "Te", "Range", "If-Range", "Accept-Encoding", "Accept-Charset", "Grpc-Accept-Encoding",
	"Connect-Accept-Encoding", "Available-Dictionary", "Dictionary-Id", "A-Im", "Expect"}

// forwarding are headers that a reverse proxy takes out of a request. They are
// the agent's own to send here, where nothing is told of the box.
var forwarding = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// pass sends a request on to its host. base is where that host begins, as seen
// from the request: a whole path has the run's token, which is taken out of all
// answers.
func (b *Broker) pass(w http.ResponseWriter, r *http.Request, s *Run, host, path, base string) {
	if r.Method == http.MethodTrace || r.Method == http.MethodConnect {
		http.Error(w, "This method is not passed on.", http.StatusMethodNotAllowed)
		return
	}
	set, err := s.headers(r.Context(), host)
	if err != nil {
		b.log.Warn("secrets not had", "error", err)
		http.Error(w, "The credential cannot be had now.", http.StatusBadGateway)
		return
	}
	if set == nil {
		http.Error(w, "There is no credential for this host.", http.StatusForbidden)
		return
	}
	to, err := url.Parse("https://" + host + path)
	if err != nil || to.Host != host {
		http.Error(w, "This is not a path.", http.StatusBadRequest)
		return
	}
	to.RawQuery = r.URL.RawQuery
	// A host may answer before it has read the whole request. Without this, the
	// server would close the request's body at the first word of the answer, and
	// the transport, still sending it, would cut the answer short.
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always is
	w.Header()["Content-Type"] = nil                     // none is guessed for an answer without one
	(&httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL, p.Out.Host, p.Out.Trailer = to, host, nil
			for _, name := range forwarding {
				if values, sent := r.Header[name]; sent {
					p.Out.Header[name] = values
				}
			}
			for _, name := range dropped {
				p.Out.Header.Del(name)
			}
			maps.Copy(p.Out.Header, set)
			p.Out.Header.Set("Accept-Encoding", "identity")
		},
		Transport:     &searching{ctx: r.Context(), run: s, set: set, base: base, send: b.transport},
		FlushInterval: -1,
		ErrorLog:      slog.NewLogLogger(b.log.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			b.log.Info("brokered request failed", "host", host, "error", err)
			said := "The host cannot be reached."
			if refused, ok := errors.AsType[refusal](err); ok {
				said = string(refused)
			}
			http.Error(w, said, http.StatusBadGateway)
		},
	}).ServeHTTP(w, r)
}

// Address is where a sandbox finds the broker for a run.
func Address(hostport, token string) string { return "http://" + hostport + "/" + token }
