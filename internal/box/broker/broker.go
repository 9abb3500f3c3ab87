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
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"

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
	transport *http.Transport

	mu      sync.RWMutex
	runs    map[[32]byte]*session
	servers []*http.Server
	closed  bool
}

type session struct {
	Run
	ctx  context.Context // ends with the run
	stop context.CancelFunc
}

// New makes a broker that knows no run yet.
func New(c Config) *Broker {
	public := ssrf.New(ssrf.WithAnyPort())
	var private []netip.Prefix
	for _, text := range c.Private {
		if addr, err := netip.ParseAddr(text); err == nil {
			private = append(private, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
		} else if p, err := netip.ParsePrefix(text); err == nil {
			private = append(private, p)
		}
	}
	// What a name resolves to is judged when it is dialled.
	dialer := &net.Dialer{Timeout: 10 * time.Second, Control: func(network, address string, conn syscall.RawConn) error {
		if at, err := netip.ParseAddrPort(address); err == nil && slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(at.Addr().Unmap()) }) {
			return nil
		}
		return public.Safe(network, address, conn)
	}}
	return &Broker{log: c.Logger, runs: map[[32]byte]*session{}, transport: &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: c.Roots, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		DisableCompression: true, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 2 * time.Minute, IdleConnTimeout: time.Minute,
		MaxResponseHeaderBytes: 256 << 10,
	}}
}

// Serve serves a listener. It returns http.ErrServerClosed after Close.
func (b *Broker) Serve(l net.Listener) error {
	srv := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		ErrorLog: slog.NewLogLogger(b.log.Handler(), slog.LevelDebug)}
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		l.Close()
		return http.ErrServerClosed
	}
	b.servers = append(b.servers, srv)
	b.mu.Unlock()
	return srv.Serve(l)
}

// Close ends every listener and request.
func (b *Broker) Close() {
	b.mu.Lock()
	b.closed = true
	servers, runs := b.servers, b.runs
	b.servers, b.runs = nil, map[[32]byte]*session{}
	b.mu.Unlock()
	for _, s := range runs {
		s.stop()
	}
	for _, srv := range servers {
		srv.Close()
	}
	b.transport.CloseIdleConnections()
}

// Register lets a run in.
func (b *Broker) Register(r Run) error {
	if r.Token == "" || r.Secrets == nil || r.Scrubber == nil {
		return errors.New("broker: a run needs a token, secrets and a scrubber")
	}
	s := &session{Run: r}
	s.ctx, s.stop = context.WithCancel(context.Background())
	key := sha256.Sum256([]byte(r.Token))
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, taken := b.runs[key]; taken || b.closed {
		s.stop()
		return errors.New("broker: the token is taken, or the broker is closed")
	}
	b.runs[key] = s
	return nil
}

// Unregister shuts a run out and cuts its requests.
func (b *Broker) Unregister(token string) {
	key := sha256.Sum256([]byte(token))
	b.mu.Lock()
	s := b.runs[key]
	delete(b.runs, key)
	b.mu.Unlock()
	if s != nil {
		s.stop()
	}
}

// ServeHTTP serves a sandbox.
func (b *Broker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	b.mu.RLock()
	s := b.runs[sha256.Sum256([]byte(token))]
	b.mu.RUnlock()
	if s == nil {
		http.Error(w, "This is not the token of a run on this box.", http.StatusForbidden)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	r = r.WithContext(ctx)
	if rest == "-/env" {
		s.env(w, r)
		return
	}
	host, path, deep := strings.Cut(rest, "/")
	base := "./" + host
	if deep {
		base = "." + strings.Repeat("/..", strings.Count(path, "/"))
	}
	b.pass(w, r, s, strings.TrimSuffix(strings.ToLower(host), ":443"), "/"+path, base)
}

// env writes the secrets that the agent may read.
func (s *session) env(w http.ResponseWriter, r *http.Request) {
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
func (s *session) headers(ctx context.Context, host string) (http.Header, error) {
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

// dropped are headers that concern one connection, or that would make an
// answer one that cannot be searched.
var dropped = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Range", "If-Range", "Accept-Encoding", "Accept-Charset", "Grpc-Accept-Encoding", "Connect-Accept-Encoding", "Available-Dictionary", "Dictionary-Id", "A-Im", "Expect"}

func clean(h http.Header) http.Header {
	h = h.Clone()
	for _, list := range h["Connection"] {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range dropped {
		h.Del(name)
	}
	return h
}

// pass sends a request on to its host. base is where
// that host begins, as seen from the request: a whole path has the run's token,
// which is taken out of all answers.
func (b *Broker) pass(w http.ResponseWriter, r *http.Request, s *session, host, path, base string) {
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
	out := r.Clone(r.Context())
	out.URL, out.Host, out.RequestURI = to, host, ""
	out.Close = false // a word about the connection here, not the one to the host
	out.Header, out.Trailer = clean(r.Header), nil
	for name, values := range set {
		out.Header[name] = values
	}
	out.Header.Set("Accept-Encoding", "identity")
	// A host may answer before it has read the whole request. Without this, the
	// server would close the request's body at the first word of the answer, and
	// the transport, still sending it, would cut the answer short.
	_ = http.NewResponseController(w).EnableFullDuplex() // HTTP/2 always is
	resp, err := b.transport.RoundTrip(out)
	if err != nil {
		b.log.Info("brokered request failed", "host", host, "error", err)
		http.Error(w, "The host cannot be reached.", http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	if why := unsearchable(resp); why != "" {
		b.log.Info("brokered answer refused", "host", host, "why", why)
		http.Error(w, "The answer "+why+" and was not passed on.", http.StatusBadGateway)
		return
	}
	if !redirect(resp, to, base) {
		http.Error(w, "The host redirects to another, which is not followed.", http.StatusBadGateway)
		return
	}
	s.passHeaders(w.Header(), resp.Header, set)
	w.WriteHeader(resp.StatusCode)
	body := io.Reader(resp.Body)
	if r.Method == http.MethodGet && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		body = &endpoint{lines: bufio.NewReader(resp.Body), at: to, base: base}
	}
	copyOut(w, body, s.Scrubber)
}

// redirect makes a redirect within the host lead back here. It is false for
// one that leads elsewhere.
func redirect(resp *http.Response, from *url.URL, base string) bool {
	places := resp.Header["Location"]
	if len(places) == 0 {
		return true
	}
	there := within(places[0], from, base)
	if there == "" || len(places) > 1 {
		return false
	}
	resp.Header.Set("Location", there)
	return true
}

// within makes a reference from an address of a host lead back here, where base
// leads to that host. It is empty for one that leads to another.
func within(reference string, from *url.URL, base string) string {
	to, err := from.Parse(reference)
	if err != nil || to.Scheme != "https" || strings.TrimSuffix(strings.ToLower(to.Host), ":443") != from.Host {
		return ""
	}
	there := base + to.EscapedPath()
	if to.RawQuery != "" {
		there += "?" + to.RawQuery
	}
	return there
}

// copyOut passes an answer on, without secrets, as it comes.
func copyOut(w http.ResponseWriter, body io.Reader, secrets *scrub.Scrubber) {
	flow := http.NewResponseController(w)
	to := secrets.Writer(w)
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if _, werr := to.Write(buf[:n]); werr != nil || flow.Flush() != nil {
				panic(http.ErrAbortHandler)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	if to.Close() != nil {
		panic(http.ErrAbortHandler)
	}
}

// Address is where a sandbox finds the broker for a run.
func Address(hostport, token string) string { return "http://" + hostport + "/" + token }
