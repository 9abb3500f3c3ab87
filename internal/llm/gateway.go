package llm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm/answer"
	"yardmaster/internal/observe"
)

// Grant is the permission that a token gives for one call.
type Grant struct {
	// Routes are where the call may go, the best first; one at least. The gateway takes
	// the first.
	Routes []Route
	// Session belongs to the Authorizer; the gateway passes it to the Recorder.
	Session any
}

// Authorizer resolves a caller's token. The gateway calls it twice per call, so it
// must be fast and should cache: first with an empty model, before the body is
// read, and again when the model is known. A refusal is a fault; the caller sees
// its detail.
type Authorizer interface {
	Authorize(ctx context.Context, token string, api API, model string) (Grant, error)
}

// Reserver reserves the cost of a call before the gateway makes the call, so that
// no budget is overrun. Reserve answers the amount in micro-dollars, between
// q.Least and q.Most; a refusal is a fault. The Recorder receives every reserved
// amount back in Usage.Reserved.
type Reserver interface {
	Reserve(ctx context.Context, g Grant, over Route, q Quote) (micros int64, err error)
}

// Recorder records the usage of every billed call for which an amount was
// reserved, also of a call that failed or ended early. For a stream Record runs
// before the end of the answer goes out, so a caller that has read a stream to its
// end finds the call recorded. The context outlives the call.
type Recorder interface {
	Record(ctx context.Context, g Grant, over Route, u Usage)
}

// Config is the configuration of a gateway. Authorizer, Reserver, Recorder, Logger
// and Now are required.
type Config struct {
	Authorizer Authorizer
	Reserver   Reserver
	Recorder   Recorder
	Logger     *slog.Logger
	Now        func() time.Time // measures how long a call takes

	Transport http.RoundTripper // nil: NewTransport(nil)
	Scripted  http.Handler      // the provider scripted; nil: there is none
	Prices    *Prices           // nil: DefaultPrices
	MaxBody   int64             // bytes; 0: MaxBody
	Idle      time.Duration     // longest silence of a provider; 0: ten minutes
	// Observe is told of every call when it is over; nil: nobody is.
	Observe func(Observed)
	Tap     Tap // keeps copies of calls; nil: nobody does
}

// Observed is a call that is over.
type Observed struct {
	Provider Provider // empty: the call was refused before that was known
	Outcome  string   // ok, refused (by the gateway), failed (by the provider), or cut (the caller did not get the whole answer)
	Duration time.Duration
	Tokens
}

// NewGateway serves /v1/messages, /v1/messages/count_tokens,
// /v1/chat/completions, /v1/responses and /v1/models, and generateContent,
// streamGenerateContent and countTokens below /v1beta/models/{model}.
func NewGateway(c Config) http.Handler {
	if c.Transport == nil {
		c.Transport = NewTransport(nil)
	}
	if c.Prices == nil {
		c.Prices = DefaultPrices()
	}
	if c.MaxBody == 0 {
		c.MaxBody = MaxBody
	}
	if c.Idle == 0 {
		c.Idle = 10 * time.Minute
	}
	return &gateway{Config: c, relay: Relay{c.Transport, c.Idle}}
}

type gateway struct {
	Config
	relay   Relay
	limiter Limiter
}

// ReadCall starts a call, for the gateway of the control plane and of a box alike:
// it finds the endpoint, checks the method and reads the body, of at most limit
// bytes, if the limiter admits that of the caller's token. When the Admission is
// nil, ReadCall has written the refusal; otherwise the caller calls
// Admission.Release at the end of the call.
func ReadCall(w http.ResponseWriter, r *http.Request, limit int64, limiter *Limiter) (Endpoint, *Request, *Admission) {
	at, found := EndpointOf(r.URL.Path)
	if !found {
		note(r.Context(), fault.NotFound.Slug(), nil)
		Refuse(w, Chat, RefusalOf(fault.New(fault.NotFound, "", "There is no such address at the model gateway.")))
		return at, nil, nil
	}
	q, admission, err := readCall(w, r, at, limit, limiter)
	if err != nil {
		note(r.Context(), fault.From(err).Slug, err)
		Refuse(w, at.API, RefusalOf(err))
	}
	return at, q, admission
}

func readCall(w http.ResponseWriter, r *http.Request, at Endpoint, limit int64, limiter *Limiter) (*Request, *Admission, error) {
	if r.Method != at.Method {
		w.Header().Set("Allow", at.Method)
		return nil, nil, fault.Newf(fault.MethodNotAllowed, "", "Use %s.", at.Method)
	}
	token := Token(r.Header)
	if token == "" {
		return nil, nil, fault.New(fault.Unauthenticated, "", "A token is required.")
	}
	if at.stream && r.URL.Query().Get("alt") != "sse" {
		return nil, nil, fault.New(fault.Invalid, "", "A stream is served as events only: add alt=sse to the query.")
	}
	admission, err := limiter.Admit(token)
	if err != nil || at.Method == http.MethodGet {
		return &Request{}, admission, err
	}
	q, err := readRequest(w, r, at, limit, admission)
	if err == nil && q.MaxOutput > 0 && at.Billed() && !at.API.caps(q.outputName) {
		err = fault.Newf(fault.Invalid, "", "The output of this API is capped by %s, not by %s.", at.API.capName(), q.outputName)
	}
	if err != nil {
		admission.Release()
		return nil, nil, err
	}
	return q, admission, nil
}

func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := g.Now()
	o := Observed{Outcome: "refused"}
	if g.Observe != nil {
		defer func() {
			o.Duration = g.Now().Sub(start)
			g.Observe(o)
		}()
	}
	if !g.checkToken(w, r) {
		return
	}
	at, q, admission := ReadCall(w, r, g.MaxBody, &g.limiter)
	if admission == nil {
		return
	}
	defer admission.Release()
	grant, err := g.Authorizer.Authorize(r.Context(), Token(r.Header), at.API, q.Model)
	var route Route
	if err == nil {
		route, err = grant.choose(at, q)
	}
	if err != nil {
		g.deny(w, r, at.API, err)
		return
	}
	o.Provider = route.Provider
	c := &call{gateway: g, grant: grant, route: route, at: at, q: q,
		usage: Usage{API: at.API, Model: cmp.Or(route.Model, q.Model), Streamed: q.Stream}}
	if at.Billed() {
		if err := c.reserve(r.Context()); err != nil {
			g.deny(w, r, at.API, err)
			return
		}
	}
	w, untap := c.tap(w, Token(r.Header))
	defer untap()
	if route.Provider.Local() {
		err = c.script(w, r)
	} else {
		err = c.forward(w, r)
	}
	c.usage.Duration = g.Now().Sub(start)
	c.record(r.Context(), err)
	o.Outcome, o.Tokens = c.outcome(err), c.usage.Tokens
	if err != nil && c.begun {
		// Only a broken connection tells the caller that the answer is incomplete.
		panic(http.ErrAbortHandler)
	}
}

// choose returns the route of a call. It fails with a fault if the route does not serve
// the endpoint, or if nothing names a model.
func (g Grant) choose(at Endpoint, q *Request) (Route, error) {
	if len(g.Routes) == 0 {
		return Route{}, errors.New("the grant of a model call has no route")
	}
	route := g.Routes[0]
	switch {
	case !route.Provider.Speaks(at.API):
		return route, fault.Newf(fault.Invalid, "api_unsupported",
			"The account's model provider, %s, does not speak this API (%s).", route.Provider, at.API)
	case at.Billed() && route.Model == "" && q.Model == "":
		return route, fault.New(fault.Unprocessable, SlugModel,
			"No model is named: neither by the call nor by the template of the run. `template.set` with model names one.")
	}
	return route, nil
}

// checkToken refuses an invalid token, and a call for which there is no room, before the body
// is read, because the gateway keeps whole bodies in memory. It returns false if it has written
// the refusal.
func (g *gateway) checkToken(w http.ResponseWriter, r *http.Request) bool {
	at, found := EndpointOf(r.URL.Path)
	token := Token(r.Header)
	if !found || token == "" {
		return true // ReadCall writes the refusal
	}
	_, err := g.Authorizer.Authorize(r.Context(), token, at.API, "")
	if !fault.IsKind(err, fault.Unauthenticated) && !fault.IsKind(err, fault.Unavailable) {
		return true
	}
	w.Header().Set("Connection", "close") // otherwise net/http would read the body before it answers
	g.deny(w, r, at.API, err)
	return false
}

// deny answers a call that is not made, and tells the record of the request why.
// A call of the platform's own is in no request: what is our fault goes into the
// log.
func (g *gateway) deny(w http.ResponseWriter, r *http.Request, api API, err error) {
	f := fault.From(err)
	note(r.Context(), f.Slug, err)
	if f.Kind == fault.Internal && !observe.Inside(r.Context()) {
		g.Logger.Error("model call not made", "error", err)
	}
	Refuse(w, api, RefusalOf(err))
}

func note(ctx context.Context, slug string, cause error) {
	r := observe.Of(ctx)
	r.Slug, r.Cause = slug, cause
}

// call is one call in the gateway.
type call struct {
	*gateway
	grant Grant
	route Route // the one of the grant's that the call goes over
	at    Endpoint
	q     *Request
	meter *Meter // set when the provider has accepted the call
	begun bool   // a part of the answer was sent on
	usage Usage
	cap   int64 // on the output, lower than the caller's; 0: the caller's
}

// reserve reserves the most that the call may cost, and lowers the cap on its
// output when the budget has less left.
func (c *call) reserve(ctx context.Context) error {
	q := c.prices().Quote(c.route.Provider, c.usage.Model, c.q)
	micros, err := c.Reserver.Reserve(ctx, c.grant, c.route, q)
	if err != nil {
		return err
	}
	c.usage.Reserved, c.cap = micros, q.Cap(micros)
	return nil
}

func (c *call) prices() *Prices {
	if c.route.Prices != nil {
		return c.route.Prices
	}
	return c.Prices
}

func (c *call) body() []byte {
	return c.q.Body(Edits{Model: c.usage.Model, CountChat: c.at.API == Chat, MaxOutput: c.cap, API: c.at.API})
}

// forward sends the call to the provider. It fails if the caller did not get a
// whole answer.
func (c *call) forward(w http.ResponseWriter, r *http.Request) error {
	route := c.route
	address, err := route.addressOf(c.at, c.usage.Model)
	if err != nil {
		refusal := RefusalOf(fault.New(fault.Unavailable, SlugUnavailable,
			"The account's model provider has no usable address.").Because(err))
		return c.refuse(w, refusal, err)
	}
	out, err := http.NewRequestWithContext(r.Context(), c.at.Method, address.String(), bytes.NewReader(c.body()))
	if err != nil {
		return c.refuse(w, RefusalOf(err), err)
	}
	if c.at.Method == http.MethodGet {
		out.Body, out.GetBody, out.ContentLength = nil, nil, 0
	}
	CopyRequestHeader(out.Header, r.Header)
	out.Header.Set("Accept-Encoding", "identity")
	route.authorize(out, c.at.API)
	x, err := c.relay.Send(out)
	if err != nil {
		refusal := RefusalOf(err)
		if refusal.Status = http.StatusBadGateway; errors.Is(err, ErrIdle) {
			refusal.Status = http.StatusGatewayTimeout
		}
		switch {
		case errors.Is(err, ErrCallerGone):
		case errors.Is(err, ErrIdle), errors.Is(err, errStale), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			c.usage.Kind = answer.Cut // it was reached, and gave no answer
		default:
			c.usage.Kind = answer.Server
		}
		return c.refuse(w, refusal, err)
	}
	defer x.Close()
	CopyResponseHeader(w.Header(), x.Header)
	w.Header().Del(FaultHeader)
	w.Header().Del(KindHeader)
	w.Header().Del(CapHeader)
	c.sayCap(w.Header())
	if x.StatusCode/100 != 2 {
		refusal, failure := upstreamRefusal(x.Response, c.at.API, route)
		return c.fail(w, refusal, failure)
	}
	if coding := x.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		// The meter cannot read a compressed answer, and the request asked for none.
		refusal := RefusalOf(unavailable("The model provider compressed its answer.", ErrCoded))
		refusal.Status = http.StatusBadGateway
		return c.refuse(w, refusal, ErrCoded)
	}
	return c.copy(w, x)
}

// copy streams an answer of the provider to the caller, or refuses the call if the
// answer has failed before anything of it was sent on.
func (c *call) copy(w http.ResponseWriter, x *Exchange) error {
	c.meter, c.usage.Status = NewMeter(c.at, x.StatusCode, x.Header), x.StatusCode
	err := x.Copy(w, c.meter, func() {
		if x.ContentLength >= 0 {
			w.Header().Set("Content-Length", strconv.FormatInt(x.ContentLength, 10))
		}
		w.WriteHeader(x.StatusCode)
	})
	c.begun = x.Sent()
	failure := c.meter.Failure()
	switch {
	case failure == nil || errors.Is(err, ErrCallerGone):
	case c.begun:
		c.usage.Kind, c.usage.Fault = failure.Kind, refusalOf(failure, c.at.API, c.route).Fault
	case errors.Is(err, ErrIdle):
		c.usage.Kind = answer.Cut
		refusal := RefusalOf(unavailable("The model provider did not answer in time.", ErrIdle))
		refusal.Status = http.StatusGatewayTimeout
		return c.refuse(w, refusal, err)
	default:
		return c.fail(w, refusalOf(failure, c.at.API, c.route), failure)
	}
	return err
}

// fail answers a call that the provider has failed. What the provider tells about
// waiting is told once, in a form that every client reads.
func (c *call) fail(w http.ResponseWriter, r Refusal, f *answer.Failure) error {
	c.usage.Kind = f.Kind
	w.Header().Del("Cache-Control")
	if f.Final {
		w.Header().Set("X-Should-Retry", "false")
	}
	if f.Kind == answer.RateLimited || f.Kind == answer.Overloaded {
		w.Header().Del("Retry-After")
		w.Header().Del("Retry-After-Ms")
	}
	return c.refuse(w, r, nil)
}

// sayCap tells the caller of a lower cap on the output.
func (c *call) sayCap(h http.Header) {
	if c.cap > 0 {
		h.Set(CapHeader, strconv.FormatInt(c.cap, 10))
	}
}

func (c *call) refuse(w http.ResponseWriter, r Refusal, err error) error {
	r.Kind = c.usage.Kind
	c.usage.Status, c.usage.Fault = r.Status, r.Fault
	Refuse(w, c.at.API, r)
	return err
}

// script answers the call in process, from Config.Scripted.
func (c *call) script(w http.ResponseWriter, r *http.Request) error {
	if c.Scripted == nil {
		return c.refuse(w, RefusalOf(fault.New(fault.Unavailable, SlugUnavailable, "There is no scripted model here.")), nil)
	}
	in := r.Clone(r.Context())
	if c.at.namesModel() {
		in.URL.Path = geminiFolder + c.usage.Model + c.at.path
	}
	in.Header = http.Header{}
	CopyRequestHeader(in.Header, r.Header)
	body := c.body()
	in.Body, in.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	c.sayCap(w.Header())
	out := &metered{ResponseWriter: w, call: c}
	c.Scripted.ServeHTTP(out, in)
	err := r.Context().Err()
	if c.meter != nil {
		c.meter.End(err)
	}
	if err != nil {
		return ErrCallerGone
	}
	return nil
}

// metered counts an answer that is written in process.
type metered struct {
	http.ResponseWriter
	call *call
}

func (m *metered) Unwrap() http.ResponseWriter { return m.ResponseWriter }

func (m *metered) WriteHeader(status int) {
	m.call.usage.Status = status
	m.call.usage.Fault = m.Header().Get(FaultHeader)
	m.call.meter, m.call.begun = NewMeter(m.call.at, status, m.Header()), true
	m.ResponseWriter.WriteHeader(status)
}

func (m *metered) Write(p []byte) (int, error) {
	if m.call.meter == nil {
		m.WriteHeader(http.StatusOK)
	}
	m.call.meter.Write(p)
	return m.ResponseWriter.Write(p)
}

var errRefused = errors.New("the provider refused it")

// outcome is that of a call that was made.
func (c *call) outcome(err error) string {
	switch {
	case errors.Is(err, ErrCallerGone):
		return "cut"
	case err != nil || c.usage.Fault != "" || c.usage.Kind != "" || c.usage.Status/100 != 2:
		return "failed"
	}
	return "ok"
}

// record passes the call to the Recorder, and tells the record of the request
// about a failure, or the log where there is no request.
func (c *call) record(ctx context.Context, err error) {
	u := &c.usage
	u.Aborted = err != nil
	if c.meter != nil {
		u.Tokens, u.Estimated = c.meter.Count(c.q.Bytes(), errors.Is(err, ErrCallerGone))
	}
	if err != nil || u.Fault != "" {
		cause := fmt.Errorf("call %s of %s over %s: status %d: %w", u.Model, c.route.Provider, u.API, u.Status,
			cmp.Or(err, errRefused))
		if u.Kind != "" {
			cause = fmt.Errorf("%w: %s", cause, u.Kind)
		}
		note(ctx, u.Fault, cause)
		observe.Of(ctx).Broken = c.begun && !errors.Is(err, ErrCallerGone)
		if !observe.Inside(ctx) {
			c.Logger.Warn("model call failed", "fault", u.Fault, "error", cause)
		}
	}
	if !c.at.Billed() {
		return
	}
	u.CostMicros = c.prices().Cost(c.route.Provider, u.Model, u.Tokens)
	c.Recorder.Record(context.WithoutCancel(ctx), c.grant, c.route, *u)
}
