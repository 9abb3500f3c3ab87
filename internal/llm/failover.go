package llm

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"yardmaster/internal/fault"
	"yardmaster/internal/llm/answer"
)

// Gate knows how routes are doing. It must be fast: the gateway asks it for every call.
type Gate interface {
	// Order puts the routes of a call into the order in which they are tried.
	Order(g Grant, model string, routes []Route) []Route
	// Enter lets a call go over a route now, or not: the route rests, is full, or another
	// call tries it out. The gateway ends the Turn, once.
	Enter(ctx context.Context, g Grant, over Route) (Turn, bool)
	// Wait is called when no route of a call has served it; tried tells that one was asked, and
	// waited how long the call has waited already. It returns nil once a route may let the call
	// in that did not before, and otherwise why the call is not made.
	Wait(ctx context.Context, g Grant, routes []Route, tried bool, waited time.Duration) error
	// Spent is called when the limits of all routes of a call leave too little for it, and returns
	// the refusal.
	Spent(ctx context.Context, g Grant, all []Spent) error
}

// ErrKeySpent is wrapped in the error of Reserver.Reserve if the limit of the route alone leaves
// too little: another route may serve the call.
var ErrKeySpent = errors.New("the limit of the key leaves too little")

// Spent is a route whose own limit leaves too little for a call.
type Spent struct {
	Route
	Quote Quote // of the call over it
}

// Turn is the time of a call on a route.
type Turn interface {
	// Began tells that the provider answers. It is called at most once, and must not wait.
	Began()
	// Over tells what came of the call.
	Over(Outcome)
}

// Outcome is what came of a call over a route.
type Outcome struct {
	Usage
	Asked   string          // the model that the caller has named
	Failure *answer.Failure // what the provider has said; nil: nothing, or it has answered
	Gone    bool            // the caller went away, which says nothing of the route
}

// Kinds of failures of a route, as Usage.Kind has them.
const (
	RateLimited  = answer.RateLimited
	Overloaded   = answer.Overloaded
	OutOfQuota   = answer.Quota
	KeyRefused   = answer.Auth
	ServerFailed = answer.Server
	CutShort     = answer.Cut
	NotAnAnswer  = answer.NotAnswer
)

// free is the turn on a route of which nothing is kept.
type free struct{}

func (free) Began()       {}
func (free) Over(Outcome) {}

// goesOn tells whether a call that has failed so goes over another route: not if the call
// itself is at fault.
func goesOn(f *answer.Failure) bool {
	switch f.Status {
	case http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return false
	}
	return f.Elsewhere
}

// choose returns the routes of a call, the best first. It fails with a fault if none serves
// the endpoint, or if nothing names a model. A route of another provider is one only if that
// is known to have the model: a name that it does not know would fail the call.
func (g *gateway) choose(grant Grant, at Endpoint, q *Request) ([]Route, error) {
	if len(grant.Routes) == 0 {
		return nil, errors.New("the grant of a model call has no route")
	}
	first := grant.Routes[0]
	switch {
	case !first.Provider.Speaks(at.API):
		return nil, fault.Newf(fault.Invalid, "api_unsupported",
			"The account's model provider, %s, does not speak this API (%s).", first.Provider, at.API)
	case at.Billed() && first.Model == "" && q.Model == "":
		return nil, fault.New(fault.Unprocessable, SlugModel,
			"No model is named: neither by the call nor by the template of the run. `template.set` with model names one.")
	}
	if q.models && slices.ContainsFunc(grant.Routes, func(r Route) bool { return r.Provider == OpenRouter }) {
		return nil, fault.New(fault.Invalid, "", "A call names one model: those of `models` have other prices, and may not be allowed.")
	}
	var routes []Route
	for i, r := range grant.Routes {
		c := g.call(grant, r, at, q)
		same := r.Provider == first.Provider && r.BaseURL == first.BaseURL
		if i == 0 || same && r.Model == first.Model ||
			r.Provider.Speaks(at.API) && at.Billed() && c.prices().Knows(r.Provider, c.usage.Model) {
			routes = append(routes, r)
		}
	}
	if g.Gate != nil && at.Billed() {
		routes = g.Gate.Order(grant, q.Model, routes)
	}
	first = routes[0]
	elsewhere := func(r Route) bool { return r.Provider != first.Provider || r.BaseURL != first.BaseURL }
	if slices.ContainsFunc(routes, elsewhere) && q.signed() {
		routes = slices.DeleteFunc(slices.Clone(routes), elsewhere)
	}
	return routes, nil
}

// seals are the members of a call that hold what a provider has signed or encrypted of an answer
// before: thoughts, which it alone takes back.
var seals = [][]byte{
	[]byte(`"signature"`), []byte(`"redacted_thinking"`), []byte(`"encrypted_content"`), []byte(`"thoughtSignature"`),
	[]byte(`"thought_signature"`), []byte(`"reasoning_details"`),
}

// signed tells whether a conversation has something that only its provider takes back: it stays
// there. A tool that has a member of such a name keeps a conversation with its provider, too.
func (q *Request) signed() bool {
	return slices.ContainsFunc(seals, func(s []byte) bool { return bytes.Contains(q.body, s) })
}

// serve makes a call over the first route that serves it, and returns the try that the caller
// knows of. Until something of an answer was sent on, a failure of one route is followed by a
// try over the next; the caller is told of none but the last resort. It returns no try if none
// was made: then the error is the refusal.
func (g *gateway) serve(w http.ResponseWriter, r *http.Request, grant Grant, at Endpoint, q *Request, routes []Route) (*call, error) {
	start := g.Now()
	for {
		last, spent, err := g.pass(w, r, grant, at, q, routes)
		if last == nil && err != nil {
			return nil, err
		}
		switch routes = without(routes, spent); {
		case len(routes) > 0:
		case last == nil:
			return nil, g.Gate.Spent(r.Context(), grant, spent)
		default:
			routes = []Route{last.route}
		}
		if last != nil && (last.refusal == nil || !last.elsewhere) {
			last.close()
			return last, err
		}
		if err := g.wait(r.Context(), grant, at, routes, last != nil, g.Now().Sub(start)); err == nil {
			if last != nil {
				last.close()
			}
			continue
		} else if last == nil {
			return nil, err
		}
		last.tell()
		last.close()
		return last, err
	}
}

var errNoRoute = unavailable("No key of the account can serve the call now.", nil)

// wait waits until a route may let a call in; the error is why that is not waited for.
func (g *gateway) wait(ctx context.Context, grant Grant, at Endpoint, routes []Route, tried bool, waited time.Duration) error {
	if g.Gate == nil || !at.Billed() || ctx.Err() != nil {
		return errNoRoute
	}
	return g.Gate.Wait(ctx, grant, routes, tried, waited)
}

// without leaves out the routes whose own limits leave too little.
func without(routes []Route, spent []Spent) []Route {
	if len(spent) == 0 {
		return routes
	}
	return slices.DeleteFunc(slices.Clone(routes), func(r Route) bool {
		return slices.ContainsFunc(spent, func(s Spent) bool { return s.ID == r.ID })
	})
}

// pass tries the routes one after another. A try whose refusal another route may mend has not
// told it: it is the one that says most to the caller. Without a try, an error is the refusal
// of the call, and no error says that no route has let it in, those aside whose own limits leave
// too little.
func (g *gateway) pass(w http.ResponseWriter, r *http.Request, grant Grant, at Endpoint, q *Request, routes []Route) (
	last *call, over []Spent, err error,
) {
	var gone error // the gift
	for _, route := range routes {
		turn, ok := g.enter(r.Context(), grant, at, route)
		if !ok {
			continue
		}
		c := g.call(grant, route, at, q)
		c.turn = turn
		if err := c.reserve(r.Context()); err != nil {
			turn.Over(Outcome{Gone: true})
			if route.Lent.Gift != "" {
				gone = err // the next gift, or what was tried before it, is as good
				continue
			}
			if g.Gate != nil && errors.Is(err, ErrKeySpent) {
				over = append(over, Spent{route, c.quote})
				continue
			}
			if last != nil {
				last.close()
			}
			return nil, nil, err
		}
		tried := c.inTurn(w, r)
		ends := c.refusal == nil || errors.Is(tried, ErrCallerGone) || !c.elsewhere && (last == nil || last.same(route))
		if ends && c.refusal != nil {
			c.elsewhere = false
			c.tell()
		}
		if ends || last == nil || !last.passes() && c.passes() {
			c, last = last, c
			err = tried
		}
		if c != nil {
			c.close()
		}
		if ends {
			return last, nil, err
		}
	}
	if last == nil {
		err = gone
	}
	return last, over, err
}

// inTurn is try, whose outcome ends the turn.
func (c *call) inTurn(w http.ResponseWriter, r *http.Request) (err error) {
	o := Outcome{Gone: true}
	defer func() { c.turn.Over(o) }()
	err = c.try(w, r)
	o = Outcome{Usage: c.usage, Asked: c.q.Model, Failure: c.told, Gone: errors.Is(err, ErrCallerGone)}
	return err
}

// same tells whether a route leads where that of the try has led. What another provider finds
// wrong with a call may be right where the call was meant to go.
func (c *call) same(r Route) bool {
	return c.route.Provider == r.Provider && c.route.BaseURL == r.BaseURL
}

// passes tells whether the failure of the try may pass.
func (c *call) passes() bool { return c.told == nil || c.told.MayPass() }

func (g *gateway) enter(ctx context.Context, grant Grant, at Endpoint, route Route) (Turn, bool) {
	if g.Gate == nil || !at.Billed() || route.Provider.Local() {
		return free{}, true
	}
	return g.Gate.Enter(ctx, grant, route)
}
