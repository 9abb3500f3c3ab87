package logsink

import (
	"context"
	"sync"
	"time"

	"yardmaster/internal/id"
	"yardmaster/internal/llm"
	"yardmaster/internal/llm/sink"
)

// queue is what waits on this node to be sent for one account.
type queue struct {
	account string
	end     context.CancelFunc // once the account has no sink any more
	some    chan struct{}      // something waits
	full    chan struct{}      // a whole batch does

	mu      sync.Mutex
	over    bool // nothing more is taken
	waiting []*record
	queued  int64 // bytes of those
	held    int64 // bytes of all copies of the account, also of calls that go on
	tally         // not stored yet

	// Of the goroutine that sends.
	known sink.Words
}

// tally is what came of copies.
type tally struct {
	sent, dropped, failed int64
	told                  bool   // a batch was sent, or given up
	why                   string // why the last one was given up; empty: it was taken
	at                    time.Time
}

func newQueue(account string) *queue {
	return &queue{account: account, some: make(chan struct{}, 1), full: make(chan struct{}, 1)}
}

// record is the copy of one call. It implements llm.Copy.
type record struct {
	sink.Made
	s        *Service
	queue    *queue
	lost     bool // there was no room
	occupied int64
}

// Keep returns what takes the copy of a call; nil if the account has no sink, or there is no
// room, which is counted.
func (s *Service) Keep(account, session string, t llm.Tapped) llm.Copy {
	s.mu.RLock()
	k := s.sinks[account]
	s.mu.RUnlock()
	if k == nil {
		return nil
	}
	body := t.Body[:min(len(t.Body), maxBody)]
	r := &record{s: s, queue: k, Made: sink.Made{
		ID: id.New(), At: s.Clock(), Account: account, Session: session, API: t.API, Provider: t.Provider, Model: t.Model, Token: t.Token,
		Asked: len(t.Body),
	}}
	if !r.occupy(weight + int64(len(body))) {
		k.mu.Lock()
		k.dropped++
		k.mu.Unlock()
		return nil
	}
	r.Body = append(make([]byte, 0, len(body)), body...)
	return r
}

// occupy counts bytes that the record holds more; false: there is no room for them.
func (r *record) occupy(n int64) bool {
	if r.s.held.Add(n) > r.s.room {
		r.s.held.Add(-n)
		return false
	}
	k := r.queue
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over || k.held+n > r.s.share {
		r.s.held.Add(-n)
		return false
	}
	k.held += n
	r.occupied += n
	return true
}

// free gives back what the record holds. The sink's lock is held.
func (r *record) free() {
	r.queue.held -= r.occupied
	r.s.held.Add(-r.occupied)
	r.occupied, r.Made.Answer, r.Body = 0, nil, nil
}

// Begun implements llm.Copy.
func (r *record) Begun(status int, mediaType string) { r.Status, r.Type = status, mediaType }

// Answer implements llm.Copy.
func (r *record) Answer(p []byte) {
	keep := p[:min(len(p), maxBody-len(r.Made.Answer))]
	r.Cut = r.Cut || len(keep) < len(p)
	if r.lost || len(keep) == 0 {
		return
	}
	if more := len(r.Made.Answer) + len(keep) - cap(r.Made.Answer); more > 0 {
		grown := min(max(2*cap(r.Made.Answer), len(r.Made.Answer)+len(keep), 4<<10), maxBody)
		if r.lost = !r.occupy(int64(grown - cap(r.Made.Answer))); r.lost {
			return
		}
		r.Made.Answer = append(make([]byte, 0, grown), r.Made.Answer...)
	}
	r.Made.Answer = append(r.Made.Answer, keep...)
}

// Ended implements llm.Copy.
func (r *record) Ended(u llm.Usage) {
	r.Usage = u
	k := r.queue
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.over:
		r.free()
		return
	case r.lost:
		r.free()
		k.dropped++
		return
	}
	k.waiting = append(k.waiting, r)
	k.queued += r.occupied
	signal(k.some)
	if len(k.waiting) >= batchSize || k.queued >= batchRoom {
		signal(k.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take takes the copies of the next batch; none: nothing waits.
func (k *queue) take() []*record {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, room := 0, int64(0)
	for n < len(k.waiting) && n < batchSize && (n == 0 || room+k.waiting[n].occupied <= batchRoom) {
		room += k.waiting[n].occupied
		n++
	}
	batch := k.waiting[:n:n]
	if k.waiting = k.waiting[n:]; len(k.waiting) == 0 {
		k.waiting = nil
	}
	k.queued -= room
	return batch
}

// settle counts a batch by what came of it, and gives its room back.
func (k *queue) settle(batch []*record, out sink.Outcome, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range batch {
		r.free()
	}
	if k.told, k.why = true, out.Why; out.Why != "" {
		k.failed += int64(len(batch))
		return
	}
	lost := max(0, min(out.Rejected, len(batch)))
	k.sent, k.failed, k.at = k.sent+int64(len(batch)-lost), k.failed+int64(lost), now
	if lost > 0 {
		k.why = "The receiver has rejected some of the calls."
	}
}

// close forgets all that waits, and takes nothing more.
func (k *queue) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	for _, r := range k.waiting {
		r.free()
	}
	k.dropped += int64(len(k.waiting))
	k.waiting, k.queued = nil, 0
}
