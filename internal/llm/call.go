package llm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"strconv"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm/answer"
	"yardmaster/internal/observe"
)

// call is one try of a call in the gateway, over one route.
type call struct {
	*gateway
	grant Grant
	route Route // the one of the grant's that the call goes over
	turn  Turn
	at    Endpoint
	q     *Request
	meter *Meter // set when the provider has accepted the call
	begun bool   // a part of the answer was sent on
	usage Usage
	quote Quote       // of what it may cost
	cap   int64       // on the output, lower than the caller's; 0: the caller's
	head  http.Header // of the answer, for the caller

	// The try has failed, and nothing of an answer was sent on: what to tell the caller,
	// and whether another route may serve the call.
	refusal   *Refusal
	elsewhere bool
	told      *answer.Failure // what the provider has said; nil: nothing

	w     http.ResponseWriter // of the answer, also of its copy
	close func()              // ends the copy
}

func (g *gateway) call(grant Grant, route Route, at Endpoint, q *Request) *call {
	return &call{gateway: g, grant: grant, route: route, at: at, q: q, head: http.Header{},
		usage: Usage{API: at.API, Model: cmp.Or(route.Model, q.Model), Tier: q.Tier, Streamed: q.Stream}}
}

// reserve reserves the most that the call may cost, and lowers the cap on its
// output when the budget has less left.
func (c *call) reserve(ctx context.Context) error {
	if !c.at.Billed() {
		return nil
	}
	q := c.prices().Quote(c.route.Provider, c.usage.Model, c.q)
	c.quote = q
	micros, err := c.Reserver.Reserve(ctx, c.grant, c.route, q)
	if err != nil {
		return err
	}
	c.usage.Reserved, c.cap = micros, q.Cap(micros)
	return nil
}

func (c *call) prices() *Prices { return cmp.Or(c.route.Prices, c.Prices) }

func (c *call) body() []byte {
	return c.q.Body(Edits{Model: c.usage.Model, CountChat: c.at.API == Chat, MaxOutput: c.cap, API: c.at.API})
}

// try makes the call over its route, for which an amount is reserved, and gives that back.
// It fails if the caller did not get a whole answer. The caller of try calls close, once it has
// told what there is to tell.
func (c *call) try(w http.ResponseWriter, r *http.Request) (err error) {
	start := c.Now()
	w, c.close = c.tap(w, Token(r.Header))
	c.w = w
	if c.route.Provider.Local() {
		err = c.script(w, r)
	} else {
		err = c.forward(w, r)
	}
	c.usage.Duration = c.Now().Sub(start)
	c.record(r.Context(), err)
	return err
}

// forward sends the call to the provider. It fails if the caller did not get a
// whole answer.
func (c *call) forward(w http.ResponseWriter, r *http.Request) error {
	address, err := c.route.addressOf(c.at, c.usage.Model, c.q.Stream)
	if err != nil {
		c.elsewhere = true
		return c.refuse(RefusalOf(fault.New(fault.Unavailable, SlugUnavailable,
			"The account's model provider has no usable address.").Because(err)), err)
	}
	out, err := c.outgoing(r, address)
	if err != nil {
		return c.refuse(RefusalOf(err), err)
	}
	x, err := c.relay.Send(out)
	if err != nil {
		return c.unsent(err)
	}
	defer x.Close()
	if a, _ := c.route.Provider.adapter(); a.opened != nil && x.StatusCode/100 == 2 {
		a.opened(x.Response)
	}
	CopyResponseHeader(c.head, x.Header)
	c.head.Del(FaultHeader)
	c.head.Del(KindHeader)
	c.head.Del(CapHeader)
	c.sayCap(c.head)
	if x.StatusCode/100 != 2 {
		refusal, failure := upstreamRefusal(x.Response, c.at.API, c.route)
		return c.fail(refusal, failure)
	}
	if coding := x.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		// The meter cannot read a compressed answer, and the request asked for none.
		refusal := RefusalOf(unavailable("The model provider compressed its answer.", ErrCoded))
		refusal.Status, c.elsewhere = http.StatusBadGateway, true
		return c.refuse(refusal, ErrCoded)
	}
	return c.copy(w, x)
}

// outgoing is the call as the provider gets it.
func (c *call) outgoing(r *http.Request, address *url.URL) (*http.Request, error) {
	header := http.Header{}
	CopyRequestHeader(header, r.Header)
	header.Set("Accept-Encoding", "identity")
	var body io.Reader // none, where nothing is sent
	if c.at.Method != http.MethodGet {
		text := c.body()
		if a, _ := c.route.Provider.adapter(); a.shape != nil {
			text = a.shape(text, header)
		}
		body = bytes.NewReader(text)
	}
	out, err := http.NewRequestWithContext(r.Context(), c.at.Method, address.String(), body)
	if err == nil {
		out.Header = header
		c.route.authorize(out, c.at.API)
	}
	return out, err
}

// unsent is the end of a call for which no head of an answer has come.
func (c *call) unsent(err error) error {
	refusal := RefusalOf(err)
	if refusal.Status = http.StatusBadGateway; errors.Is(err, ErrIdle) {
		refusal.Status = http.StatusGatewayTimeout
	}
	switch {
	case errors.Is(err, ErrCallerGone):
		return c.refuse(refusal, err)
	case errors.Is(err, ErrIdle), errors.Is(err, errStale), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		c.usage.Kind = answer.Cut // it was reached, and gave no answer
	default:
		c.usage.Kind = answer.Server
	}
	c.elsewhere = true
	return c.refuse(refusal, err)
}

// copy streams an answer of the provider to the caller, or refuses the call if the
// answer has failed before anything of it was sent on.
func (c *call) copy(w http.ResponseWriter, x *Exchange) error {
	c.meter, c.usage.Status = NewMeter(c.at, x.StatusCode, x.Header), x.StatusCode
	err := x.Copy(w, c.meter, func() {
		maps.Copy(w.Header(), c.head)
		if x.ContentLength >= 0 {
			w.Header().Set("Content-Length", strconv.FormatInt(x.ContentLength, 10))
		}
		w.WriteHeader(x.StatusCode)
		c.turn.Began()
	})
	c.begun = x.Sent()
	failure := c.meter.Failure()
	switch {
	case failure == nil || errors.Is(err, ErrCallerGone):
	case c.begun:
		c.told = failure
		c.usage.Kind, c.usage.Fault = failure.Kind, refusalOf(failure, c.at.API, c.route).Fault
	case errors.Is(err, ErrIdle):
		c.usage.Kind, c.elsewhere = answer.Cut, true
		refusal := RefusalOf(unavailable("The model provider did not answer in time.", ErrIdle))
		refusal.Status = http.StatusGatewayTimeout
		return c.refuse(refusal, err)
	default:
		return c.fail(refusalOf(failure, c.at.API, c.route), failure)
	}
	return err
}

// fail refuses a call that the provider has failed. What the provider tells about
// waiting is told once, in a form that every client reads.
func (c *call) fail(r Refusal, f *answer.Failure) error {
	c.usage.Kind, c.told, c.elsewhere = f.Kind, f, goesOn(f)
	c.head.Del("Cache-Control")
	if f.Final {
		c.head.Set("X-Should-Retry", "false")
	}
	if f.Kind == answer.RateLimited || f.Kind == answer.Overloaded {
		c.head.Del("Retry-After")
		c.head.Del("Retry-After-Ms")
	}
	return c.refuse(r, nil)
}

// refuse notes what the caller is told unless another route serves the call.
func (c *call) refuse(r Refusal, err error) error {
	r.Kind = c.usage.Kind
	c.usage.Status, c.usage.Fault, c.refusal = r.Status, r.Fault, &r
	return err
}

// tell tells the caller of a call that has failed.
func (c *call) tell() {
	maps.Copy(c.w.Header(), c.head)
	Refuse(c.w, c.at.API, *c.refusal)
}

// sayCap tells the caller of a lower cap on the output.
func (c *call) sayCap(h http.Header) {
	if c.cap > 0 {
		h.Set(CapHeader, strconv.FormatInt(c.cap, 10))
	}
}

// script answers the call in process, from Config.Scripted.
func (c *call) script(w http.ResponseWriter, r *http.Request) error {
	if c.Scripted == nil {
		return c.refuse(RefusalOf(fault.New(fault.Unavailable, SlugUnavailable, "There is no scripted model here.")), nil)
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

// mostOutput is how many tokens of output the provider may give to the call.
func (c *call) mostOutput() int64 {
	most := int64(math.MaxInt64)
	for _, bound := range []int64{c.q.MaxOutput, c.quote.max, c.cap} {
		if bound > 0 {
			most = min(most, bound)
		}
	}
	if choices := c.q.choices(); most <= math.MaxInt64/choices {
		most *= choices
	}
	return most
}

// record passes the call to the Recorder, and tells the record of the request
// about a failure, or the log where there is no request.
func (c *call) record(ctx context.Context, err error) {
	u := &c.usage
	u.Aborted = err != nil
	if c.meter != nil {
		u.Tokens, u.Estimated = c.meter.Count(c.q.Bytes(), errors.Is(err, ErrCallerGone))
		if u.Estimated {
			u.OutputTokens = min(u.OutputTokens, c.mostOutput())
		}
		u.Tier = cmp.Or(c.meter.Tier(), u.Tier)
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
	} else {
		note(ctx, "", nil) // whatever another route has said before
	}
	if !c.at.Billed() {
		return
	}
	u.CostMicros = c.prices().Cost(c.route.Provider, u.Model, u.Tier, u.Tokens)
	c.Recorder.Record(context.WithoutCancel(ctx), c.grant, c.route, *u)
}
