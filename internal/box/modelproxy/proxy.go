// Package modelproxy is the proxy between an agent on a box and the network. It is
// one HTTP server on loopback (or on a socket that is mounted into a sandbox
// without a network) with two functions.
//
// For an agent it is the model provider: it takes a call with the token of the
// run, which is valid nowhere else, and sends it to the control plane's gateway
// with the token of the attempt, which the agent never sees. It counts tokens,
// and it ends a run whose agent would retry a hopeless call for minutes.
//
// For all other traffic of the sandbox it is a forward proxy that reaches only
// the hosts on the run's list.
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
	LocalToken string // given to the agent
	Upstream   string // address of the control plane's model gateway, without /v1; empty: it reaches no model
	Token      string // the attempt's model token, for the control plane

	// Model replaces every requested model that Models does not name, because
	// agents request models of their own choice for titles and summaries. Empty: no
	// replacement.
	Model  string
	Models []string

	// Own is the proxy's address as the sandbox sees it, host:port. A client that
	// sends every request through its proxy still reaches the model with it.
	Own string

	// Egress lists what the sandbox may reach: host, *.domain, an address or a
	// prefix, each with an optional :port (80 and 443 without one, :* for any). An
	// address that is not public needs an address or a prefix of its own, even when
	// its name is listed.
	Egress []string

	OnUsage func(Totals) // called after each call with the totals so far; may run concurrently
	// OnFatal is called once, when the run's calls fail for good or for too long.
	// kind is a task's failure_kind.
	OnFatal func(kind, detail string)
}

// Totals is the model traffic of a run so far.
type Totals struct {
	llm.Tokens
	Model  string // of the last answer
	Calls  int64  // billed calls that were answered
	Failed int64
	// Refused is the failure kind of the last call if a retry could not succeed.
	// Agents report such a failure in words of their own, or not at all.
	Refused string
}

// Config configures a Proxy. Logger is required.
type Config struct {
	Logger    *slog.Logger
	Transport http.RoundTripper // to the control plane; nil: llm.NewTransport(nil)
	Idle      time.Duration     // longest silence of the control plane; 0: eleven minutes
	Permanent int               // consecutive failures that no retry can repair before OnFatal is called; 0: 3
	Transient int               // consecutive failures of any kind before OnFatal is called; 0: 30
}

// Proxy is the server. It can serve several listeners.
type Proxy struct {
	Config
	relay llm.Relay
	calls llm.Limiter
	gate  *gate.Gate[*session] // by local token
}

// New returns a proxy that knows no run yet.
func New(c Config) *Proxy {
	if c.Transport == nil {
		c.Transport = llm.NewTransport(nil)
	}
	if c.Idle == 0 {
		c.Idle = 11 * time.Minute // longer than the control plane's own limit, whose error gives the reason
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

// Close closes every listener, call and tunnel.
func (p *Proxy) Close() {
	for _, pass := range p.gate.Close() {
		pass.Run.plain.CloseIdleConnections()
	}
}

// Register admits a run. It fails if the run's addresses or tokens are unusable,
// and with gate.ErrTaken if another run has its local token.
func (p *Proxy) Register(run Run) error {
	upstream, err := url.Parse(run.Upstream)
	if err != nil || run.Upstream != "" && (upstream.Host == "" || upstream.Scheme != "http" && upstream.Scheme != "https") {
		return fmt.Errorf("model proxy: %q is no address of a gateway", run.Upstream)
	}
	if run.LocalToken == "" || run.Upstream != "" && run.Token == "" {
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

// Unregister removes a run, cancels its calls and tunnels, and returns its totals;
// they are zero if there is no such run.
func (p *Proxy) Unregister(localToken string) Totals {
	pass := p.gate.Dismiss(localToken)
	if pass == nil {
		return Totals{}
	}
	pass.Run.plain.CloseIdleConnections()
	return pass.Run.sum()
}

// NoToken is the answer to a caller without the token of a run. No provider was
// asked, and no key is wrong.
const NoToken = "This call does not carry the token of a run on this box."

// handle distinguishes the two functions: a client asks a proxy for an absolute
// address.
func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodConnect || r.URL.IsAbs() && !p.own(r) {
		p.egress(w, r)
		return
	}
	pass := p.gate.Find(llm.Token(r.Header))
	if pass == nil || pass.Run.upstream == "" {
		noToken(w, r)
		return
	}
	p.call(w, r, pass)
}

func noToken(w http.ResponseWriter, r *http.Request) {
	at, _ := llm.EndpointOf(r.URL.Path)
	llm.Refuse(w, at.API, llm.RefusalOf(fault.New(fault.Unauthenticated, "", NoToken)))
}

// call answers a model call of a run.
func (p *Proxy) call(w http.ResponseWriter, r *http.Request, pass *gate.Pass[*session]) {
	at, q, admission := llm.ReadCall(w, r, llm.MaxBody, &p.calls)
	if admission == nil {
		return
	}
	defer admission.Release()
	ctx, cancel := pass.Bound(r.Context())
	defer cancel()
	c := &call{proxy: p, session: pass.Run, at: at, q: q, model: pass.Run.model(q.Model)}
	if err := c.forward(ctx, w, r); err != nil {
		p.Logger.Debug("model call not answered whole", "error", err)
		if c.begun {
			panic(http.ErrAbortHandler) // the only way left to tell the agent
		}
	}
}

// own tells whether an absolute address is the proxy's own: a client that uses a
// proxy for everything asks for the model with an absolute address, too.
func (p *Proxy) own(r *http.Request) bool {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && r.URL.Host == at.String() {
		return true
	}
	pass := p.gate.Find(llm.Token(r.Header)) // in a sandbox with a network of its own the proxy has another address
	return pass != nil && r.URL.Host == pass.Run.run.Own
}

// call is one model call.
type call struct {
	proxy   *Proxy
	session *session
	at      llm.Endpoint
	q       *llm.Request
	model   string
	meter   *llm.Meter // set when the control plane has answered
	begun   bool       // a part of the answer was sent on
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
		refusal := llm.RefusalOf(fault.New(fault.Unavailable, llm.SlugUnavailable,
			"The control plane's model gateway cannot be reached."))
		llm.Refuse(w, c.at.API, refusal)
		if !errors.Is(err, llm.ErrCallerGone) {
			c.failed(refusal)
		}
		return err
	}
	defer x.Close()
	llm.CopyResponseHeader(w.Header(), x.Header)
	c.meter = llm.NewMeter(c.at, x.StatusCode, x.Header)
	err = x.Copy(w, c.meter, func() {
		if x.ContentLength >= 0 {
			w.Header().Set("Content-Length", strconv.FormatInt(x.ContentLength, 10))
		}
		w.WriteHeader(x.StatusCode)
	})
	c.begun = x.Sent()
	refusal, failed := c.meter.Refusal(c.at.API)
	switch {
	case x.StatusCode/100 != 2:
		c.failed(llm.Refusal{Status: x.StatusCode, Fault: x.Header.Get(llm.FaultHeader), Kind: llm.KindOf(x.Header)})
	case errors.Is(err, llm.ErrCallerGone):
		c.count(true)
		c.session.succeeded()
	case failed:
		if c.begun {
			c.count(false)
		} else {
			llm.Refuse(w, c.at.API, refusal)
		}
		c.failed(refusal)
	default:
		c.count(false)
		c.session.succeeded()
	}
	return err
}

// count adds the tokens of the answer, or an estimate if the provider has not
// counted what it sent. unread says that the agent went away.
func (c *call) count(unread bool) {
	if !c.at.Billed() {
		return
	}
	tokens, _ := c.meter.Count(c.q.Bytes(), unread)
	c.session.add(tokens, c.model)
}

func (c *call) failed(r llm.Refusal) {
	c.session.failed(r, c.proxy.Permanent, c.proxy.Transient)
}
