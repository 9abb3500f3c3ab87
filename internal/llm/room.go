package llm

import (
	"io"
	"sync"
	"time"

	"yardmaster/internal/fault"
)

// Limits of the concurrent calls of one token. A gateway keeps whole prompts in
// memory, so one caller's calls could exhaust it; so could a call that a provider
// sends back to the gateway it came from.
const (
	maxCalls = 64
	maxHeld  = 2 * MaxBody
)

// Room limits the concurrent calls of each token. The zero value is ready.
type Room struct {
	mu   sync.Mutex
	held map[string]*share
}

type share struct {
	calls int
	bytes int64
}

// Stay is one call that Room has admitted.
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

// Enter admits a call; the caller calls Stay.Leave at its end. It fails with
// fault.RateLimited when the token has too many calls in progress.
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

// take counts n more bytes of a body. It fails with fault.RateLimited when the
// token's calls would hold more than maxHeld bytes.
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

// Leave releases the call's share. It is called once.
func (s *Stay) Leave() {
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	s.share.bytes -= s.bytes
	if s.share.calls--; s.share.calls == 0 {
		delete(s.room.held, s.token)
	}
}

// taking counts the bytes of a body of unknown length as they arrive.
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
