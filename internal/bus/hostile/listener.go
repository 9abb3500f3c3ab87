package hostile

import (
	"context"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// listener hears everything in an account.
type listener struct {
	sub *nats.Subscription

	mu   sync.Mutex
	seen map[string]string // subject -> reply
	news chan struct{}     // closed and replaced by each message
}

func listen(nc *nats.Conn) (*listener, error) {
	l := &listener{seen: map[string]string{}, news: make(chan struct{})}
	sub, err := nc.Subscribe(">", func(m *nats.Msg) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.seen[m.Subject] = m.Reply
		close(l.news)
		l.news = make(chan struct{})
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

// await tells whether a message with the subject comes in time, and its reply.
func (l *listener) await(ctx context.Context, subject string, limit time.Duration) (reply string, ok bool) {
	late := time.After(limit)
	for {
		l.mu.Lock()
		reply, ok = l.seen[subject]
		news := l.news
		l.mu.Unlock()
		if ok {
			return reply, true
		}
		select {
		case <-news:
		case <-late:
			return "", false
		case <-ctx.Done():
			return "", false
		}
	}
}

// heard tells whether a message with the subject shows.
func (l *listener) heard(subject string) bool {
	_, ok := l.await(context.Background(), subject, settle)
	return ok
}

// replyOf waits for a message with the subject.
func (l *listener) replyOf(ctx context.Context, subject string) string {
	reply, _ := l.await(ctx, subject, 5*time.Second)
	return reply
}

// counter counts what should not happen.
type counter struct {
	mu   sync.Mutex
	n    int
	news chan struct{}
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	if c.news != nil {
		close(c.news)
		c.news = nil
	}
}

// above tells whether the count exceeds n soon.
func (c *counter) above(ctx context.Context, n int) bool {
	late := time.After(5 * settle)
	for {
		c.mu.Lock()
		more := c.n > n
		if c.news == nil {
			c.news = make(chan struct{})
		}
		news := c.news
		c.mu.Unlock()
		if more {
			return true
		}
		select {
		case <-news:
		case <-late:
			return false
		case <-ctx.Done():
			return false
		}
	}
}
