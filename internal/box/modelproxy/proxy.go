// Package modelproxy is what stands between an agent on a box and the network.
// It is one HTTP server on loopback (or on a socket that is mounted into a
// sandbox without a network) with two faces.
//
// To an agent it is its model provider: it takes a call with the token of the
// run, which is worth nothing anywhere else, and sends it to the control
// plane's gateway with the token of the attempt, which the agent never sees.
// It counts tokens, and it ends the patience of agents that would retry a
// hopeless call for minutes.
//
// To everything else in the sandbox it is a forward proxy that reaches the
// hosts on the run's list and no others.
package modelproxy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm"
)

// Run is a run that may use the proxy, from Register to Unregister.
type Run struct {
	LocalToken string // what the agent is given
	Upstream   string // address of the control plane's model gateway, without /v1
	Token      string // what the control plane takes: the attempt's model token

	// Model is asked for in place of any that Models does not name: agents ask
	// for models of their own choice for titles and summaries. Empty: as asked.
	Model  string
	Models []string

	// Own is the proxy's address as the sandbox sees it, host:port. Clients that
	// send all they ask for through a proxy find their model under it all the same.
	Own string

	// Egress lists what the sandbox may reach: host, *.domain, an address or a
	// prefix, each with an optional :port (80 and 443 without one, :* for any).
	// An address that is not public needs an address or a prefix of its own,
	// even when its name is listed.
	Egress []string

	OnUsage func(Totals) // after each call, with the totals so far; may run concurrently
	// OnFatal is called once, when the run's calls fail for good or for too
	// long. The kind is a task's failure_kind.
	OnFatal func(kind, detail string)
}

// Totals is a run's model traffic so far.
type Totals struct {
	llm.Tokens
	Model  string // of the last answer
	Calls  int64  // billed calls that were answered
	Failed int64
	// Refused is the failure kind of the last call, if no retry could mend it;
	// agents pass that on in words of their own, or not at all.
	Refused string
}

// Config is what a proxy is made of. Logger is required.
type Config struct {
	Logger    *slog.Logger
	Transport http.RoundTripper // to the control plane; nil: llm.NewTransport(nil)
	Idle      time.Duration     // longest silence of the control plane; 0: eleven minutes
	Permanent int               // failures in a row that no retry can mend, before OnFatal; 0: 3
	Transient int               // failures of any sort in a row, before OnFatal; 0: 30
}

// Proxy is the server. It serves any number of listeners.
type Proxy struct {
	Config
	relay llm.Relay
	room  llm.Room

	mu      sync.RWMutex
	runs    map[[32]byte]*session // by the digest of the local token
	servers []*http.Server
	closed  bool
}

// New makes a proxy that knows no run yet.
func New(c Config) *Proxy {
	if c.Transport == nil {
		c.Transport = llm.NewTransport(nil)
	}
	if c.Idle == 0 {
		c.Idle = 11 * time.Minute // the control plane gives up first, and says why
	}
	if c.Permanent == 0 {
		c.Permanent = 3
	}
	if c.Transient == 0 {
		c.Transient = 30
	}
	return &Proxy{Config: c, relay: llm.Relay{Transport: c.Transport, Idle: c.Idle}, runs: map[[32]byte]*session{}}
}

// Listen opens a port on loopback for Serve.
func Listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// Serve serves a listener that any run may use. It returns http.ErrServerClosed
// after Close.
func (p *Proxy) Serve(l net.Listener) error { return p.serve(l, "") }

// ServeRun serves a listener that one run alone can reach, such as a socket in
// its sandbox: whoever connects is that run, and may use the forward proxy
// without credentials. Model calls still need the run's token.
func (p *Proxy) ServeRun(l net.Listener, localToken string) error { return p.serve(l, localToken) }

// server serves connections that the owner alone can make; any run's, if empty.
func (p *Proxy) server(owner string) *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.handle(w, r, owner) }),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(p.Logger.Handler(), slog.LevelDebug),
	}
}

func (p *Proxy) serve(l net.Listener, owner string) error {
	srv := p.server(owner)
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		l.Close()
		return http.ErrServerClosed
	}
	p.servers = append(p.servers, srv)
	p.mu.Unlock()
	err := srv.Serve(l)
	p.mu.Lock()
	p.servers = slices.DeleteFunc(p.servers, func(s *http.Server) bool { return s == srv })
	p.mu.Unlock()
	return err
}

// Close ends every listener, call and tunnel.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	servers, runs := p.servers, p.runs
	p.servers, p.runs = nil, map[[32]byte]*session{}
	p.mu.Unlock()
	for _, s := range runs {
		s.end()
	}
	for _, srv := range servers {
		srv.Close()
	}
}

// Register lets a run in.
func (p *Proxy) Register(run Run) error {
	upstream, err := url.Parse(run.Upstream)
	if err != nil || upstream.Host == "" || upstream.Scheme != "http" && upstream.Scheme != "https" {
		return fmt.Errorf("model proxy: %q is no address of a gateway", run.Upstream)
	}
	if run.LocalToken == "" || run.Token == "" {
		return errors.New("model proxy: a run needs a local token and the attempt's token")
	}
	rules, err := parseRules(run.Egress)
	if err != nil {
		return fmt.Errorf("model proxy: %w", err)
	}
	s := newSession(run, strings.TrimRight(upstream.String(), "/"), rules)
	p.mu.Lock()
	defer p.mu.Unlock()
	key := sha256.Sum256([]byte(run.LocalToken))
	if _, taken := p.runs[key]; taken || p.closed {
		s.end()
		return errors.New("model proxy: the local token is taken, or the proxy is closed")
	}
	p.runs[key] = s
	return nil
}

// Unregister shuts a run out, cuts its calls and tunnels, and answers its
// totals; zero for a run that is not there.
func (p *Proxy) Unregister(localToken string) Totals {
	key := sha256.Sum256([]byte(localToken))
	p.mu.Lock()
	s := p.runs[key]
	delete(p.runs, key)
	p.mu.Unlock()
	if s == nil {
		return Totals{}
	}
	s.end()
	return s.sum()
}

func (p *Proxy) find(localToken string) *session {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.runs[sha256.Sum256([]byte(localToken))]
}

// NoToken is said to a caller that does not show the token of a run. No provider
// was asked, and no key is wrong: the agent did not send what it was given.
const NoToken = "This call does not carry the token of a run on this box."

// handle tells the two faces apart: a proxy is asked for a whole address.
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request, owner string) {
	if r.Method == http.MethodConnect || r.URL.IsAbs() && !p.own(r) {
		p.egress(w, r, owner)
		return
	}
	token := llm.Token(r.Header)
	s := p.find(token)
	if s == nil || owner != "" && s != p.find(owner) {
		at, _ := llm.EndpointOf(r.URL.Path)
		llm.Refuse(w, at.API, llm.RefusalOf(fault.New(fault.Unauthenticated, "", NoToken)))
		return
	}
	at, q, stay := llm.Accept(w, r, llm.MaxBody, &p.room)
	if stay == nil {
		return
	}
	defer stay.Leave()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	c := &call{proxy: p, session: s, at: at, q: q, model: s.model(q.Model)}
	if err := c.forward(ctx, w, r); err != nil {
		p.Logger.Debug("model call not answered whole", "error", err)
		if c.meter != nil {
			panic(http.ErrAbortHandler) // all that is left to tell the agent
		}
	}
}

// own tells whether a whole address is the proxy's own: a client that has been
// told to use a proxy for everything asks for the model that way too.
func (p *Proxy) own(r *http.Request) bool {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && r.URL.Host == at.String() {
		return true
	}
	s := p.find(llm.Token(r.Header)) // in a sandbox with a network of its own it has another address
	return s != nil && r.URL.Host == s.run.Own
}

// call is one model call.
type call struct {
	proxy   *Proxy
	session *session
	at      llm.Endpoint
	q       *llm.Request
	model   string
	meter   *llm.Meter // set when the answer's body begins
}

func (c *call) forward(ctx context.Context, w http.ResponseWriter, r *http.Request) error {
	var body *bytes.Reader
	if c.at.Method == http.MethodPost {
		body = bytes.NewReader(c.q.Body(llm.Edits{Model: c.model}))
	} else {
		body = bytes.NewReader(nil)
	}
	out, err := http.NewRequestWithContext(ctx, c.at.Method, c.session.upstream+c.at.Address(c.model), body)
	if err != nil {
		return err
	}
	llm.CopyRequestHeader(out.Header, r.Header)
	out.Header.Set("Accept-Encoding", "identity")
	out.Header.Set("Authorization", "Bearer "+c.session.run.Token)
	x, err := c.proxy.relay.Send(out)
	if err != nil {
		refusal := llm.RefusalOf(fault.New(fault.Unavailable, llm.SlugUnavailable, "The control plane's model gateway cannot be reached."))
		llm.Refuse(w, c.at.API, refusal)
		if !errors.Is(err, llm.ErrCallerGone) {
			c.failed(http.StatusServiceUnavailable, llm.SlugUnavailable)
		}
		return err
	}
	defer x.Close()
	llm.CopyResponseHeader(w.Header(), x.Header)
	if x.ContentLength >= 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(x.ContentLength, 10))
	}
	c.meter = llm.NewMeter(x.Header.Get("Content-Type"))
	w.WriteHeader(x.StatusCode)
	err = x.Copy(w, c.meter)
	switch {
	case x.StatusCode/100 != 2:
		c.failed(x.StatusCode, x.Header.Get(llm.FaultHeader))
	case err != nil && !errors.Is(err, llm.ErrCallerGone):
		c.count()
		c.failed(http.StatusBadGateway, llm.SlugUnavailable)
	default:
		c.count()
		c.session.succeeded()
	}
	return err
}

// count adds what the answer said, or what it must have been if it was cut off.
func (c *call) count() {
	if !c.at.Billed() {
		return
	}
	tokens, counted := c.meter.Tokens()
	if !counted {
		tokens = c.meter.Estimate(c.q.Bytes())
	}
	c.session.add(tokens, c.model)
}

func (c *call) failed(status int, slug string) {
	c.session.failed(status, slug, c.proxy.Permanent, c.proxy.Transient)
}
