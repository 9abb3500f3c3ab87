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
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/box/gate"
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
	gate  *gate.Gate[*session] // by local token
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
	return &Proxy{Config: c, relay: llm.Relay{Transport: c.Transport, Idle: c.Idle}, gate: gate.New[*session](c.Logger)}
}

// Listen opens a port on loopback for Serve.
func Listen() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }

// Serve serves a listener. It returns http.ErrServerClosed after Close.
func (p *Proxy) Serve(l net.Listener) error { return p.gate.Serve(l, http.HandlerFunc(p.handle)) }

// Close ends every listener, call and tunnel.
func (p *Proxy) Close() {
	for _, pass := range p.gate.Close() {
		pass.Run.plain.CloseIdleConnections()
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
	if err := p.gate.Admit(run.LocalToken, newSession(run, strings.TrimRight(upstream.String(), "/"), rules)); err != nil {
		return fmt.Errorf("model proxy: %w", err)
	}
	return nil
}

// Unregister shuts a run out, cuts its calls and tunnels, and answers its
// totals; zero for a run that is not there.
func (p *Proxy) Unregister(localToken string) Totals {
	pass := p.gate.Dismiss(localToken)
	if pass == nil {
		return Totals{}
	}
	pass.Run.plain.CloseIdleConnections()
	return pass.Run.sum()
}

// NoToken is said to a caller that does not show the token of a run. No provider
// was asked, and no key is wrong: the agent did not send what it was given.
const NoToken = "This call does not carry the token of a run on this box."

// handle tells the two faces apart: a proxy is asked for a whole address.
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect || r.URL.IsAbs() && !p.own(r) {
		p.egress(w, r)
		return
	}
	pass := p.gate.Find(llm.Token(r.Header))
	if pass == nil {
		noToken(w, r)
		return
	}
	p.call(w, r, pass)
}

func noToken(w http.ResponseWriter, r *http.Request) {
	at, _ := llm.EndpointOf(r.URL.Path)
	llm.Refuse(w, at.API, llm.RefusalOf(fault.New(fault.Unauthenticated, "", NoToken)))
}

// call answers a call of a run to its model.
func (p *Proxy) call(w http.ResponseWriter, r *http.Request, pass *gate.Pass[*session]) {
	at, q, stay := llm.Accept(w, r, llm.MaxBody, &p.room)
	if stay == nil {
		return
	}
	defer stay.Leave()
	ctx, cancel := pass.Bound(r.Context())
	defer cancel()
	c := &call{proxy: p, session: pass.Run, at: at, q: q, model: pass.Run.model(q.Model)}
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
	pass := p.gate.Find(llm.Token(r.Header)) // in a sandbox with a network of its own it has another address
	return pass != nil && r.URL.Host == pass.Run.run.Own
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
