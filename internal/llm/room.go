package llm

import (
	"io"
	"sync"
	"time"

	"yardmaster/internal/fault"
)

// What the calls under way of one token may hold. A gateway keeps a prompt
// whole, so one caller's calls would else be all the memory there is; so would
// a call that a provider leads back to the gateway it came from.
const (
	maxCalls = 64
	maxHeld  = 2 * MaxBody
)

// Room bounds the calls of each token. The zero value is ready.
type Room struct {
	mu   sync.Mutex
	held map[string]*share
}

type share struct {
	calls int
	bytes int64
}

// Stay is one call in a room.
type Stay struct {
	room  *Room
	token string
	share *share
	bytes int64
}

func full() error {
	f := fault.New(fault.RateLimited, "", "Too many calls are under way, or too long ones.")
	f.RetryAfter = time.Second
	return f
}

// Enter lets a call in. Leave when it is over.
func (m *Room) Enter(token string) (*Stay, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.held[token]
	if s == nil {
		if m.held == nil {
			m.held = map[string]*share{}
		}
		s = &share{}
		m.held[token] = s
	}
	if s.calls == maxCalls {
		return nil, full()
	}
	s.calls++
	return &Stay{room: m, token: token, share: s}, nil
}

// take makes room for so many bytes of a body.
func (s *Stay) take(n int64) error {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	if s.share.bytes+n > maxHeld {
		return full()
	}
	s.share.bytes += n
	s.bytes += n
	return nil
}

// Leave gives back what the call held. It is called once.
func (s *Stay) Leave() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.share.bytes -= s.bytes
	if s.share.calls--; s.share.calls == 0 {
		delete(s.room.held, s.token)
	}
}

// taking makes room for a body of unknown length as it comes.
type taking struct {
	io.Reader
	stay *Stay
}

func (t taking) Read(p []byte) (int, error) {
	n, err := t.Reader.Read(p)
	if full := t.stay.take(int64(n)); full != nil {
		return 0, full
	}
	return n, err
}
