package held

import (
	"context"
	"net/http"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/fault"
)

// Room limits the requests that are answered at once: of an address, and in all. Half of it is
// for those whose credential was verified (Known). Some kinds of requests have room of their
// own besides, so that they are answered when everything else is full.
type Room struct {
	Limits
	Apart []Apart
	// Checks is how many requests that show a credential are let in when everything else is
	// full, to have it looked at.
	Checks int
	// Shows tells whether a request shows what may be a credential. It is looked up before the
	// request counts as a stranger's, but nothing is read and waited for.
	Shows func(*http.Request) bool
	// StrangersTime is how long the body of a stranger may take in all. A body beyond it breaks
	// off.
	StrangersTime time.Duration
	// Address is the address that a request comes from, past trusted proxies.
	Address func(*http.Request) string
	// Refuse answers a request with a fault.
	Refuse func(http.ResponseWriter, *http.Request, *fault.Error)

	held limit.Held
}

// Apart is a kind of requests with room of its own.
type Apart struct {
	Name string
	// Own lets nobody in but callers of whom Known said that it is their own. Is is not asked.
	Own  bool
	Is   func(*http.Request) bool
	Most int
	// PerAddress is the share of one address; zero is half of the room.
	PerAddress int
	// Time and Body are how long the body of a stranger may take here, and how many bytes it may
	// have, also in the room for all; no Time: the same as elsewhere.
	Time time.Duration
	Body int64
}

// room is how many requests may be answered of all kinds together: what is not set apart.
func (r *Room) room() int {
	all := r.All - r.Checks
	for _, a := range r.Apart {
		all -= a.Most
	}
	return max(all, 1)
}

// Handler lets requests to next, within the limits. The connection of one that is refused is
// closed.
func (r *Room) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if c := connOf(req.Context()); c != nil {
			defer c.work()()
		}
		p := &place{
			room: r, req: req, rc: http.NewResponseController(w), from: limit.Site(r.Address(req)),
			body: req.Body != nil && req.Body != http.NoBody,
		}
		defer p.end()
		if err := r.let(p); err != nil {
			w.Header().Set("Connection", "close")
			r.Refuse(w, req, fault.From(err))
			return
		}
		inside := req.WithContext(context.WithValue(req.Context(), placeKey{}, p))
		if p.body {
			inside.Body = &stranded{ReadCloser: req.Body, p: p}
		}
		next.ServeHTTP(w, inside)
	})
}

// let lets a request in, as a stranger's or to have its credential looked at.
func (r *Room) let(p *place) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !r.Shows(p.req) {
		return p.estrange()
	}
	full := p.enter()
	if full != nil && !p.into(Apart{Name: "checks", Most: r.Checks}) {
		return p.refusal(full)
	}
	return nil
}
