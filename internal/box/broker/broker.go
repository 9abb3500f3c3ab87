// Package broker lets an agent use secrets that it cannot read. It is an HTTP
// server on the box that a sandbox reaches: a request to
//
//	<address>/<token of the run>/<host>/<path>?<query>
//
// goes on to https://<host>/<path>?<query> with the run's credential for that
// host set; hosts without a credential are refused. The broker searches the answer
// for the run's secrets, in all the forms in which agents print them, before the
// agent sees it. It asks hosts not to send answers that it cannot search (a part
// of an answer, a compressed one, one in UTF-16) and refuses them. It follows no
// redirects: one to the same host is made to lead back to the broker, one to
// another host is refused.
//
// Secrets that the agent may read are served at <address>/<token>/-/env, as lines
// for a shell. So the agent can read a secret that a person supplied meanwhile
// without a restart, and the secret is on no disk.
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

// Credential is a secret for some hosts.
type Credential struct {
	Hosts  []string // host, or host:port unless it is 443
	Header string
	Value  string // the whole value of the header
}

// Secrets are the secrets that a run may use.
type Secrets struct {
	Env         map[string]string
	Credentials []Credential
}

// Run is a run that may use the broker, from Register to Unregister.
type Run struct {
	Token string // given to the agent; valid nowhere else
	// Secrets returns the run's secrets. With fresh it asks the control plane, at a
	// limited rate.
	Secrets  func(ctx context.Context, fresh bool) (Secrets, error)
	Scrubber *scrub.Scrubber // knows every secret before Secrets answers it
}

// Config configures a Broker. Logger is required.
type Config struct {
	Logger *slog.Logger
	Roots  *x509.CertPool // nil: the system's
	// Private lists addresses and prefixes that may be dialled although they are
	// not public. Entries that are neither are ignored.
	Private []string
}

// Broker is the server. It can serve several listeners.
type Broker struct {
	log       *slog.Logger
	gate      *gate.Gate[Run]
	transport *http.Transport
}

// New returns a broker that knows no run yet.
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

// Close closes every listener and cancels every request.
func (b *Broker) Close() {
	b.gate.Close()
	b.transport.CloseIdleConnections()
}

// Register admits a run. It returns an error for a run without a token, secrets or
// scrubber, and gate.ErrTaken for a token that another run has.
func (b *Broker) Register(r Run) error {
	if r.Token == "" || r.Secrets == nil || r.Scrubber == nil {
		return errors.New("broker: a run needs a token, secrets and a scrubber")
	}
	if err := b.gate.Admit(r.Token, r); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return nil
}

// Unregister removes a run and cancels its requests.
func (b *Broker) Unregister(token string) { b.gate.Dismiss(token) }

// ServeHTTP answers a request of a sandbox.
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

// headers returns the headers to set on a request to host, nil if no credential is
// for it.
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

// dropped lists request headers that could lead to an unsearchable answer, and
// those that a reverse proxy keeps for a change of protocol.
var dropped = []string{
	"Connection", "Upgrade", "Te", "Range", "If-Range", "Accept-Encoding", "Accept-Charset", "Grpc-Accept-Encoding",
	"Connect-Accept-Encoding", "Available-Dictionary", "Dictionary-Id", "A-Im", "Expect",
}

// forwarding lists headers that a reverse proxy removes from a request. Here the
// agent may send its own, and the broker adds none about the box.
var forwarding = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"}

// pass sends a request to its host. base is a relative reference from the request
// to the root of that host: an absolute path would contain the run's token, which
// is removed from all answers.
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
	// A host may answer before it has read the whole request. Without full duplex
	// the server would close the request's body when the answer begins, and the
	// transport, still sending the body, would cut the answer short.
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always is
	w.Header()["Content-Type"] = nil                     // nothing is guessed for an answer without a type
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

// Address returns the address at which a sandbox reaches the broker for a run.
func Address(hostport, token string) string { return "http://" + hostport + "/" + token }
