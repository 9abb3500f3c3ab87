package llm

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/observe"
)

// Grant is the permission that a token gives for one call.
type Grant struct {
	// Routes are where the call may go, the best first; one at least. When one fails before
	// anything of its answer has come, the gateway tries the next.
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
	Tap     Tap  // keeps copies of calls; nil: nobody does
	Gate    Gate // knows how routes are doing; nil: all of them are well
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
	var routes []Route
	if err == nil {
		routes, err = g.choose(grant, at, q)
	}
	if err != nil {
		g.deny(w, r, at.API, err)
		return
	}
	o.Provider = routes[0].Provider
	c, err := g.serve(w, r, grant, at, q, routes)
	if c == nil {
		g.deny(w, r, at.API, err)
		return
	}
	o.Provider, o.Outcome, o.Tokens = c.route.Provider, c.outcome(err), c.usage.Tokens
	if err != nil && c.begun {
		// Only a broken connection tells the caller that the answer is incomplete.
		panic(http.ErrAbortHandler)
	}
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
