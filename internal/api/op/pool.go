package op

import (
	"errors"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"yardmaster/internal/api/limit"
)

// Pool limits how many bodies are read at once of callers that nobody knows yet. A place in it
// is for a time, and one address has a share, so that senders that trickle keep no others out.
// Safe for concurrent use.
type Pool struct {
	Most  int           // places
	Share int           // of one address
	Time  time.Duration // for which a caller has a place
	Now   func() time.Time

	mu     sync.Mutex
	places []*place // oldest first
}

// place is held by one call, until its time is over.
type place struct {
	who  netip.Addr
	till time.Time
}

// errSlow ends a body whose sender has had its time.
var errSlow = errors.New("the body took longer than its place in the pool is for")

// Read takes a place for a call, and has the body of the call fail once its time is over. ok
// is false if there is no place. A place whose time is over is anybody's, though its caller
// may still be waiting for more of the body.
func (p *Pool) Read(c *Call) (leave func(), ok bool) {
	now := p.Now()
	own := &place{limit.Site(c.Request.IP), now.Add(p.Time)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.places = slices.DeleteFunc(p.places, func(x *place) bool { return !now.Before(x.till) })
	of := 0
	for _, x := range p.places {
		if x.who == own.who {
			of++
		}
	}
	if len(p.places) >= p.Most || of >= p.Share {
		return nil, false
	}
	p.places = append(p.places, own)
	c.Body = &timed{c.Body, own.till, p.Now}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.places = slices.DeleteFunc(p.places, func(x *place) bool { return x == own })
	}, true
}

// timed is a body that fails when its time is over.
type timed struct {
	io.Reader
	till time.Time
	now  func() time.Time
}

// Read implements io.Reader.
func (t *timed) Read(b []byte) (int, error) {
	if t.Reader == nil {
		return 0, io.EOF
	}
	n, err := t.Reader.Read(b)
	if err == nil && !t.now().Before(t.till) {
		err = errSlow
	}
	return n, err
}
