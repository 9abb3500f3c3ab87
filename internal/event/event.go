// Package event records what happened. Every change writes one audit row in its own
// transaction (Kind.Record). A goroutine that waits for changes of an object (a
// stream, a long poll, the dispatcher) waits on the Hub, which is notified after
// the commit. The Hub carries no data: a woken goroutine reads the database again,
// so a lost or repeated notice does no harm.
package event

import (
	"context"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/observe"
)

// Hub wakes the goroutines that wait for a topic. Topics are free text; the
// functions below make those in use. A goroutine may be woken although nothing has
// changed.
type Hub struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
	older   map[string]chan struct{} // topics with waiters from before rotated
	rotated time.Time
	relay   func(topics []string) // nil: there are no other nodes
}

// topicLifetime is how long a topic with waiters is kept, because waiters do not say
// when they stop to wait, and most topics never change again. Waiters that are left
// are woken then and wait anew.
const topicLifetime = 10 * time.Minute

// NewHub returns a hub for the waiters of this process; Relay connects it to those
// of other processes.
func NewHub() *Hub { return &Hub{waiting: map[string]chan struct{}{}} }

// RunTopic is notified when a run has new events or ends.
func RunTopic(run string) string { return "run:" + run }

// TaskTopic is notified when a task changes its state.
func TaskTopic(task string) string { return "task:" + task }

// QueueTopic is notified when an account may have work to claim.
func QueueTopic(account string) string { return "queue:" + account }

// PullTopic is notified when a pull request or an action on it needs work.
const PullTopic = "pulls"

// RepoTopic is notified when the policy file of a repository is to be read again.
const RepoTopic = "repos"

// WebhookTopic is notified when something is to be sent to a webhook.
const WebhookTopic = "webhooks"

// LogSinkTopic is notified when an account has set or cleared its log sink.
const LogSinkTopic = "log-sinks"

// SourceTopic is notified when the secrets of sources are to be looked at.
const SourceTopic = "sources"

// DueTopic is notified when an entry of package db/due may be due.
const DueTopic = "due"

// Sweep calls pass at once, after each notice of the topic, and after each interval
// every, until ctx ends. Each call is a pass of the loop, see observe.Pass.
func (h *Hub) Sweep(ctx context.Context, loop, topic string, every time.Duration, pass func(context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		notice := h.Watch(topic)
		in, end := observe.Pass(ctx, loop)
		pass(in)
		end()
		select {
		case <-ctx.Done():
			return
		case <-notice:
		case <-tick.C:
		}
	}
}

// Watch returns a channel that is closed at the next notice of the topic. Call
// Watch before reading the database, so that no change is missed in between.
func (h *Hub) Watch(topic string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.older[topic]; c != nil {
		return c
	}
	c := h.waiting[topic]
	if c == nil {
		c = make(chan struct{})
		h.waiting[topic] = c
	}
	return c
}

// Wake wakes the waiters of the topics in this process.
func (h *Hub) Wake(topics ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range topics {
		for _, m := range []map[string]chan struct{}{h.waiting, h.older} {
			if c := m[t]; c != nil {
				close(c)
				delete(m, t)
			}
		}
	}
}

// WakeAll wakes all waiters of this process.
func (h *Hub) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range []map[string]chan struct{}{h.waiting, h.older} {
		for t, c := range m {
			close(c)
			delete(m, t)
		}
	}
}

// rotate wakes the waiters of the topics from before the last rotation, and forgets
// these topics, if topicLifetime has passed since the last rotation.
func (h *Hub) rotate(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.rotated) < topicLifetime {
		return
	}
	for _, c := range h.older {
		close(c)
	}
	h.older, h.waiting, h.rotated = h.waiting, map[string]chan struct{}{}, now
}

// Notify wakes the waiters of the topics after tx has committed.
func (h *Hub) Notify(tx *db.Tx, topics ...string) {
	now := tx.Now
	tx.AfterCommit(func() {
		h.rotate(now)
		h.Wake(topics...)
		if h.relay != nil {
			h.relay(topics)
		}
	})
}
