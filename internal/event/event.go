// Package event records what happened. Every change writes one audit row in
// its own transaction (Kind.Record); whoever waits for news of an object (a
// stream, a long poll, the dispatcher) waits on the Hub, which is told after
// the commit. The Hub carries no data: who wakes reads the database again, so
// a lost or doubled wake-up is harmless.
package event

import (
	"context"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/observe"
)

// Hub wakes those who wait for a topic. Topics are free text; the constructors
// below name the ones in use. Who waits may also be woken without news.
type Hub struct {
	mu      sync.Mutex
	waiting map[string]chan struct{}
	older   map[string]chan struct{} // waited for since before turned
	turned  time.Time
	relay   func(topics []string) // nil: there are no other nodes
}

// forgotten is how long a topic is kept for whoever waits for it: nobody says
// when he stops waiting, and most topics never have news again. Who still waits
// then is woken, and watches anew.
const forgotten = 10 * time.Minute

// NewHub makes a hub for the waiters of this process; see Relay for those of
// others.
func NewHub() *Hub { return &Hub{waiting: map[string]chan struct{}{}} }

// RunTopic has news when a run has new events or ends.
func RunTopic(run string) string { return "run:" + run }

// TaskTopic has news when a task changes state.
func TaskTopic(task string) string { return "task:" + task }

// QueueTopic has news when work may have become claimable in an account.
func QueueTopic(account string) string { return "queue:" + account }

// PullTopic has news when a pull request or an action on it needs work.
const PullTopic = "pulls"

// RepoTopic has news when the policy file of a repository is to be read again.
const RepoTopic = "repos"

// AskTopic has news when an ask waits for a judge.
const AskTopic = "asks"

// BacklogTopic has news when an import of a backlog is queued.
const BacklogTopic = "backlog"

// Sweep calls pass now, at each notice of the topic, and at least this often,
// until ctx ends. Each is a pass of the loop topic.sweep, see observe.Pass.
func (h *Hub) Sweep(ctx context.Context, topic string, every time.Duration, pass func(context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		news := h.Watch(topic)
		in, end := observe.Pass(ctx, topic+".sweep")
		pass(in)
		end()
		select {
		case <-ctx.Done():
			return
		case <-news:
		case <-tick.C:
		}
	}
}

// Watch answers a channel that is closed at the next notice of the topic. Take
// it before reading the database, so that nothing falls in between.
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

// Hear wakes the local waiters of the topics.
func (h *Hub) Hear(topics ...string) {
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

// HearAll wakes all local waiters.
func (h *Hub) HearAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range []map[string]chan struct{}{h.waiting, h.older} {
		for t, c := range m {
			close(c)
			delete(m, t)
		}
	}
}

// turn lets go of the topics that have been waited for since before the last
// turn, if that was long ago.
func (h *Hub) turn(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now.Sub(h.turned) < forgotten {
		return
	}
	for _, c := range h.older {
		close(c)
	}
	h.older, h.waiting, h.turned = h.waiting, map[string]chan struct{}{}, now
}

// Notify wakes the waiters of the topics once tx has committed.
func (h *Hub) Notify(tx *db.Tx, topics ...string) {
	now := tx.Now
	tx.AfterCommit(func() {
		h.turn(now)
		h.Hear(topics...)
		if h.relay != nil {
			h.relay(topics)
		}
	})
}
