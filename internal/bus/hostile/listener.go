package hostile

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// listener records every message in an account.
type listener struct {
	nc    *nats.Conn
	sub   *nats.Subscription
	marks int // that upToNow has sent

	mu      sync.Mutex
	seen    map[string]string // subject -> reply
	changed chan struct{}     // closed and replaced at each message
}

func listen(nc *nats.Conn) (*listener, error) {
	l := &listener{nc: nc, seen: map[string]string{}, changed: make(chan struct{})}
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

// await waits until late for a message with the subject, and answers its reply
// subject.
func (l *listener) await(ctx context.Context, subject string, late <-chan time.Time) (reply string, ok bool) {
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

// heard tells whether a message with the subject has arrived, or does within settle.
func (l *listener) heard(subject string) bool {
	_, ok := l.await(context.Background(), subject, time.After(settle))
	return ok
}

// upToNow waits until the listener has heard all that the server has routed to it: a
// message of its own comes behind that.
func (l *listener) upToNow(ctx context.Context) error {
	l.marks++
	mark := fmt.Sprint("mark.", l.marks)
	if err := l.nc.Publish(mark, nil); err != nil {
		return fmt.Errorf("hostile: %w", err)
	}
	if _, ok := l.await(ctx, mark, nil); !ok {
		return fmt.Errorf("hostile: a listener does not hear itself: %w", ctx.Err())
	}
	return nil
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
