// Package delivery receives what code hosts send. A delivery is stored before it is
// answered, since a host does not send it again by itself. The queue "deliveries" applies
// what is stored, in any order, on whichever node is free; a sweep finds what was never sent.
//
//   - delivery.go: states, how a delivery is received
//   - loop.go: how deliveries are applied
//   - sweep.go: how lost deliveries are found
//   - ops.go, store.go: the rows
package delivery

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/api/op"
	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/db/due"
	"yardmaster/internal/event"
	"yardmaster/internal/fault"
	"yardmaster/internal/needs"
)

// State is what became of a delivery.
type State string

// States of a delivery.
const (
	Stored  = "stored"
	Applied = "applied"
	Ignored = "ignored" // it tells nothing that means anything here
	Failed  = "failed"  // it could not be applied; it can be replayed
)

// Values lists all states.
func (State) Values() []string { return []string{Stored, Applied, Ignored, Failed} }

// eventIgnored is why a delivery was ignored.
const eventIgnored = "event_ignored"

// Limits of a delivery. GitHub sends none larger than 25 MB (Webhook events and
// payloads, payload cap). A server reads largeAtOnce bodies above large at a time, of them
// largeOfOne of one address: it knows only at their end whether they are signed. How long a
// sender may take is for the server to limit.
const (
	maxBody     = 25 << 20
	large       = 1 << 20
	largeAtOnce = 8
	largeOfOne  = 4
	largeKnown  = 4 // besides, of the addresses from which signed ones have come
	mostKnown   = 256
)

// Receiver applies what a host tells. It is called outside of a transaction, and
// again with the same event if it fails or a node dies: it must be idempotent.
type Receiver interface {
	Apply(ctx context.Context, host string, e codehost.Event) error
}

// Needs are the dependencies of Service.
type Needs struct {
	DB       *db.DB
	Hub      *event.Hub
	Due      *due.Kernel
	Hosts    *codehost.Hosts
	Receiver Receiver
	Logger   *slog.Logger
	Clock    func() time.Time
	Keep     time.Duration // how long deliveries are kept; 0: kept
}

// Service receives deliveries, applies them, and looks for what was not delivered.
type Service struct {
	Needs

	queue due.Entries

	mu    sync.Mutex
	known map[string]bool // sites from which this process has had signed deliveries
}

// New makes a Service of n. It panics if a required field of n is nil.
func New(n Needs) *Service {
	needs.Whole(n)
	n.Keep = cmp.Or(n.Keep, kept)
	s := &Service{Needs: n, known: map[string]bool{}}
	s.queue = due.Register(n.Due, due.Queue[row]{
		Name: "deliveries", Hold: hold, AtOnce: atOnce, Share: atOnce,
		Retry: due.Ladder{First: time.Second, Longest: longest, Tries: maxTries},
		Load:  load, Work: s.apply, GiveUp: s.giveUp, Open: open,
	})
	return s
}

// Receipt answers a delivery.
type Receipt struct {
	_    struct{} `doc:"What became of a delivery." schema:"DeliveryReceipt"`
	Kind string   `json:"kind" enum:"ack,noop" example:"ack" doc:"ack: it is stored, and will be applied; noop: it was received before"`
}

var errForged = fault.New(fault.Unauthenticated, "bad-signature", "The delivery is not signed with the secret of this server's App.")

// receive stores a delivery. A delivery that is signed is not counted, and passes whatever
// its address has sent before: a host sends all of its deliveries from few addresses. One
// that is refused is counted for its address. One that names no App of this server is not
// read at all.
func (s *Service) receive(ctx context.Context, p *op.Pipeline, c *op.Call) op.Answer {
	refuse := func(err error) op.Answer { return p.RefuseFor(c, err) }
	if c.Refused != nil {
		return refuse(c.Refused)
	}
	if _, err := s.accept(c, nil); errors.Is(err, codehost.ErrForeign) {
		return refuse(errForged.Because(err))
	}
	if c.Length < 0 || c.Length > large {
		kind, most := "large deliveries", largeAtOnce
		if s.knows(c.Request.IP) {
			kind, most = "large deliveries of known senders", largeKnown
		}
		leave, err := p.HoldBody(c, kind, largeOfOne, most)
		if err != nil {
			return p.Refuse(c, err)
		}
		defer leave()
	}
	body, err := c.JSON()
	if err != nil {
		return refuse(err)
	}
	d, err := s.accept(c, body)
	if err != nil {
		return refuse(errForged.Because(err))
	}
	s.meet(c.Request.IP)
	fresh, err := s.store(ctx, d)
	if err != nil {
		return p.Refuse(c, err)
	}
	if !fresh {
		return p.Reply(c, Receipt{Kind: "noop"})
	}
	return p.Reply(c, Receipt{Kind: "ack"})
}

// knows tells whether a signed delivery has come from a site: such senders have places for large ones
// that strangers cannot take.
func (s *Service) knows(ip string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[limit.Site(ip).String()]
}

// meet remembers the site of a signed delivery.
func (s *Service) meet(ip string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= mostKnown {
		clear(s.known)
	}
	s.known[limit.Site(ip).String()] = true
}

// accept finds the host that has sent a delivery. It fails with codehost.ErrForged or
// codehost.ErrForeign.
func (s *Service) accept(c *op.Call, body []byte) (d codehost.Delivery, err error) {
	err = codehost.ErrForeign
	for name, feed := range s.Hosts.Feeds() {
		d, failure := feed.Accept(c.Header, body)
		if failure == nil {
			d.Host = name
			return d, nil
		}
		if !errors.Is(failure, codehost.ErrForeign) {
			err = failure
		}
	}
	return d, err
}

// store stores a delivery; false if it was stored before.
func (s *Service) store(ctx context.Context, d codehost.Delivery) (fresh bool, err error) {
	packed, err := pack(d.Body)
	if err != nil {
		return false, err
	}
	err = s.DB.Write(ctx, func(tx *db.Tx) error {
		n, err := insert.Exec(tx, insertArgs{
			Host: d.Host, GUID: d.GUID, Kind: d.Kind, Body: packed, Bytes: int64(len(d.Body)), Now: tx.Micros(),
		})
		if fresh = n > 0; fresh {
			s.queue.Add(tx, key(d.Host, d.GUID), due.Entry{})
		}
		return err
	})
	return fresh, err
}

func pack(body []byte) ([]byte, error) {
	w, _ := packers.Get().(*gzip.Writer)
	defer packers.Put(w)
	var b bytes.Buffer
	w.Reset(&b)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	err := w.Close()
	return b.Bytes(), err
}

// packers are used again: a new one takes longer to make than a body to pack.
var packers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // of a level that there is not
	}
	return w
}}

func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("read a stored delivery: %w", err)
	}
	return io.ReadAll(io.LimitReader(r, maxBody+1))
}
