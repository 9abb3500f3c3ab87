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
	maxBytes = 2 * MaxBody // of bodies
)

// Limiter limits the concurrent calls of each token. The zero value is ready.
type Limiter struct {
	mu      sync.Mutex
	byToken map[string]*load
}

// load is the concurrent calls of one token.
type load struct {
	calls int
	bytes int64
}

// Admission is one call that a Limiter has admitted.
type Admission struct {
	limiter *Limiter
	token   string
	load    *load // of the token
	bytes   int64 // of this call
}

func tooManyCalls() error {
	f := fault.New(fault.RateLimited, "", "Too many calls are under way, or too long ones.")
	f.RetryAfter = time.Second
	return f
}

// Admit admits a call; the caller calls Admission.Release at its end. It fails with
// fault.RateLimited when the token has too many calls in progress.
func (m *Limiter) Admit(token string) (*Admission, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.byToken[token]
	if l == nil {
		if m.byToken == nil {
			m.byToken = map[string]*load{}
		}
		l = &load{}
		m.byToken[token] = l
	}
	if l.calls == maxCalls {
		return nil, tooManyCalls()
	}
	l.calls++
	return &Admission{limiter: m, token: token, load: l}, nil
}

// addBytes counts n more bytes of a body. It fails with fault.RateLimited when the
// token's calls would hold more than maxBytes.
func (a *Admission) addBytes(n int64) error {
	a.limiter.mu.Lock()
	defer a.limiter.mu.Unlock()
	if a.load.bytes+n > maxBytes {
		return tooManyCalls()
	}
	a.load.bytes += n
	a.bytes += n
	return nil
}

// Release gives the call and its bytes back to the Limiter. It is called once.
func (a *Admission) Release() {
	a.limiter.mu.Lock()
	defer a.limiter.mu.Unlock()
	a.load.bytes -= a.bytes
	if a.load.calls--; a.load.calls == 0 {
		delete(a.limiter.byToken, a.token)
	}
}

// countedReader counts the bytes of a body of unknown length as they arrive.
type countedReader struct {
	io.Reader
	admission *Admission
}

func (r countedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if refused := r.admission.addBytes(int64(n)); refused != nil {
		return 0, refused
	}
	return n, err
}
