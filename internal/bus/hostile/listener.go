package hostile

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// listener records every message in an account.
type listener struct {
	sub *nats.Subscription

	mu      sync.Mutex
	seen    map[string]string // subject -> reply
	changed chan struct{}     // closed and replaced at each message
}

func listen(nc *nats.Conn) (*listener, error) {
	l := &listener{seen: map[string]string{}, changed: make(chan struct{})}
	sub, err := nc.Subscribe(">", func(m *nats.Msg) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.seen[m.Subject] = m.Reply
		close(l.changed)
		l.changed = make(chan struct{})
	})
	if err != nil {
		return nil, err
	}
	l.sub = sub
	return l, nc.Flush()
}

func (l *listener) stop() { _ = l.sub.Unsubscribe() }

func (l *listener) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.seen)
}

// await waits up to limit for a message with the subject, and answers its reply
// subject.
func (l *listener) await(ctx context.Context, subject string, limit time.Duration) (reply string, ok bool) {
	late := time.After(limit)
	for {
		l.mu.Lock()
		reply, ok = l.seen[subject]
		changed := l.changed
		l.mu.Unlock()
		if ok {
			return reply, true
		}
		select {
		case <-changed:
		case <-late:
			return "", false
		case <-ctx.Done():
			return "", false
		}
	}
}

// heard tells whether a message with the subject arrives within settle.
func (l *listener) heard(subject string) bool {
	_, ok := l.await(context.Background(), subject, settle)
	return ok
}

// replyOf waits up to 5 s for a message with the subject, and answers its reply
// subject; empty if there was none.
func (l *listener) replyOf(ctx context.Context, subject string) string {
	reply, _ := l.await(ctx, subject, 5*time.Second)
	return reply
}

// counter counts messages that must not arrive.
type counter struct {
	mu      sync.Mutex
	n       int
	changed chan struct{}
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
}

// above tells whether the count exceeds n within a few settle times.
func (c *counter) above(ctx context.Context, n int) bool {
	late := time.After(5 * settle)
	for {
		c.mu.Lock()
		more := c.n > n
		if c.changed == nil {
			c.changed = make(chan struct{})
		}
		changed := c.changed
		c.mu.Unlock()
		if more {
			return true
		}
		select {
		case <-changed:
		case <-late:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
