package held

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/fault"
)

// stage is what is known of the sender of a request.
type stage int

const (
	checking stage = iota // shows a credential that nobody has verified
	stranger
	verified
)

// place is the place of a request in a Room. It is that of a stranger until a credential is
// verified, or while one is looked up; from the first byte of a body on it is one of the two.
type place struct {
	room *Room
	req  *http.Request
	rc   *http.ResponseController
	from netip.Addr
	body bool // there is one

	mu        sync.Mutex
	stage     stage
	common    bool        // it is in the room for all, not in one set apart
	leave     func()      // that room
	strangers func()      // if it is one of them
	counted   func()      // what its caller holds
	most      int64       // bytes of a stranger's body; zero: there is no limit here
	timer     *time.Timer // of a stranger's body
	slow      bool        // its time is over
	read      bool        // the body, to its end
	over      bool
}

type placeKey struct{}

func placeOf(ctx context.Context) *place {
	p, _ := ctx.Value(placeKey{}).(*place)
	return p
}

// Known tells the Room that the credential of the request of ctx was verified: it is no
// stranger's any more. Count, which may be nil, counts it for its caller until the request ends.
// Own names a room set apart which the caller may enter for who it is. Known fails with the
// fault of count, or if there is no room. A request is made known once; outside of a request
// Known does nothing.
func Known(ctx context.Context, own string, count func() (leave func(), err error)) error {
	p := placeOf(ctx)
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage == verified || p.over {
		return nil
	}
	if p.stage == checking && !p.common {
		if full := p.enter(); full != nil && !p.aside(own) {
			return p.refusal(full)
		}
	}
	if count != nil {
		leave, err := count()
		if err != nil {
			return err
		}
		p.counted = leave
	}
	p.stage = verified
	p.strangers = gone(p.strangers)
	if p.timer != nil {
		p.timer.Stop()
	}
	return nil
}

// Stranger tells the Room that the request of ctx presents no credential that is one. It fails
// if there is no room for strangers.
func Stranger(ctx context.Context) error {
	if p := placeOf(ctx); p != nil {
		return p.settle()
	}
	return nil
}

// settle makes the request a stranger's, unless it is known whose it is.
func (p *place) settle() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage != checking || p.over {
		return nil
	}
	return p.estrange()
}

// gone gives a place back.
func gone(leave func()) func() {
	if leave != nil {
		leave()
	}
	return nil
}

// move gives the room back that the request is in, for another one.
func (p *place) move(leave func(), common bool) {
	gone(p.leave)
	p.leave, p.common = leave, common
}

// enter moves into the room for all, unless it is full.
func (p *place) enter() (full *limit.Quota) {
	leave, full := p.room.held.Take(
		limit.Quota{Bucket: limit.Bucket{Name: "address", IP: p.from}, Most: p.room.PerAddress},
		limit.Quota{Bucket: limit.Bucket{Name: "all"}, Most: p.room.room()})
	if full == nil {
		p.move(leave, true)
	}
	return full
}

// estrange makes the request a stranger's.
func (p *place) estrange() error {
	leave, full := p.room.held.Take(limit.Quota{Bucket: limit.Bucket{Name: "strangers"}, Most: max(p.room.room()/2, 1)})
	if full == nil {
		if !p.common {
			full = p.enter()
		}
		if full == nil {
			p.strangers = leave
		} else {
			leave()
		}
	}
	if full != nil && !p.aside("") {
		return p.refusal(full)
	}
	p.stage = stranger
	var most time.Duration
	if most, p.most = p.limits(); p.body && most > 0 {
		p.timer = time.AfterFunc(most, p.late)
	}
	return nil
}

// late ends the body of a stranger whose time is over before all of it came. Once it was read,
// nothing more is read, and a cut would only cancel the request.
func (p *place) late() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stage == stranger && !p.over && !p.read {
		p.slow = true
		p.cut()
	}
}

// cut ends the waiting for more of the body, also that of the server after the answer.
func (p *place) cut() { _ = p.rc.SetReadDeadline(time.Unix(1, 0)) }

// aside moves into a room set apart that the request is for, or that is the caller's own.
func (p *place) aside(own string) bool {
	for _, a := range p.room.Apart {
		if (a.Own && a.Name == own || !a.Own && a.Is(p.req)) && p.into(a) {
			return true
		}
	}
	return false
}

func (p *place) into(a Apart) bool {
	share := a.PerAddress
	if share == 0 {
		share = max(a.Most/2, 1)
	}
	leave, full := p.room.held.Take(limit.Quota{Bucket: limit.Bucket{Name: a.Name, IP: p.from}, Most: share},
		limit.Quota{Bucket: limit.Bucket{Name: a.Name}, Most: a.Most})
	if full == nil {
		p.move(leave, false)
	}
	return full == nil
}

// limits are the time of a stranger's body and its most bytes.
func (p *place) limits() (time.Duration, int64) {
	for _, a := range p.room.Apart {
		if !a.Own && a.Time > 0 && a.Is(p.req) {
			return a.Time, a.Body
		}
	}
	return p.room.StrangersTime, 0
}

// end gives back all that the request holds.
func (p *place) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.timer != nil {
		p.timer.Stop()
	}
	if p.body && !p.read && p.stage != verified {
		p.cut() // or the server would wait for the rest before it answers
	}
	p.leave, p.strangers, p.counted = gone(p.leave), gone(p.strangers), gone(p.counted)
}

func (p *place) refusal(full *limit.Quota) *fault.Error {
	if full.Name == "address" {
		return op.TooMuchOpen("There are as many open requests from this address as there may be. End some, or try again.")
	}
	return op.TooMuchOpen("The server has as many open requests as it may have. Try again.")
}

// What ends the body of a stranger.
var (
	errSlow = errors.New("the body took longer than strangers have time for")
	errLong = errors.New("the body is longer than those of strangers are here")
)

// stranded is a body that fails where strangers have no room, time or bytes for it.
type stranded struct {
	io.ReadCloser
	p   *place
	got int64
}

// Read implements io.Reader.
func (s *stranded) Read(b []byte) (int, error) {
	if err := s.p.settle(); err != nil {
		s.p.cut()
		return 0, err
	}
	n, err := s.ReadCloser.Read(b)
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.p.read = s.p.read || errors.Is(err, io.EOF)
	if s.p.stage == verified || s.p.over {
		return n, err
	}
	s.got += int64(n)
	switch {
	case s.p.slow && !errors.Is(err, io.EOF):
		err = errSlow
	case s.p.most > 0 && s.got > s.p.most:
		err = errLong
	default:
		return n, err
	}
	s.p.cut()
	return n, err
}
