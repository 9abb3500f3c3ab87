package event

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
)

// channel is the database channel of the notices.
const channel = "yardmaster_notices"

// relayEvery is how long notices are collected before they are sent together.
const relayEvery = 5 * time.Millisecond

// Relay connects a hub to the hubs of the other nodes of a database, so that each
// notice reaches all of them.
type Relay struct {
	db     *db.DB
	hub    *Hub
	logger *slog.Logger
	node   string

	mu     sync.Mutex
	topics map[string]bool // to be sent
	some   chan struct{}   // of capacity one: there are topics
}

// NewRelay connects a new hub to those of other nodes.
func NewRelay(d *db.DB, h *Hub, logger *slog.Logger) *Relay {
	r := &Relay{db: d, hub: h, logger: logger, node: id.New(), topics: map[string]bool{}, some: make(chan struct{}, 1)}
	h.relay = r.add
	return r
}

// add queues topics to be sent soon.
func (r *Relay) add(topics []string) {
	r.mu.Lock()
	for _, t := range topics {
		r.topics[t] = true
	}
	r.mu.Unlock()
	select {
	case r.some <- struct{}{}:
	default:
	}
}

// Loop sends and receives notices until ctx ends. Notices are lost while the
// database cannot be reached; all waiters are woken afterwards.
func (r *Relay) Loop(ctx context.Context) error {
	var sending sync.WaitGroup
	sending.Go(func() { r.send(ctx) })
	defer sending.Wait()
	for {
		err := r.db.Listen(ctx, channel, r.hub.WakeAll, r.hear)
		if ctx.Err() != nil {
			return nil
		}
		r.logger.WarnContext(ctx, "notices of other nodes are not heard for a moment", slog.Any("error", err))
		if !wait(ctx, time.Second) {
			return nil
		}
	}
}

// hear wakes the local waiters of the topics in an announcement of another node.
func (r *Relay) hear(text string) {
	node, topics, _ := strings.Cut(text, "\n")
	if node != r.node {
		r.hub.Wake(strings.Split(topics, "\n")...)
	}
}

func (r *Relay) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.some:
		}
		if !wait(ctx, relayEvery) {
			return
		}
		r.mu.Lock()
		topics := r.topics
		r.topics = map[string]bool{}
		r.mu.Unlock()
		in, end := observe.Pass(ctx, "event.relay")
		for _, text := range r.texts(topics) {
			err := r.db.Announce(in, channel, text)
			observe.Failed(in, err)
			if err != nil && ctx.Err() == nil {
				r.logger.WarnContext(ctx, "other nodes were not told of a change", slog.Any("error", err))
			}
		}
		end()
	}
}

// texts returns the announcements of topics: the node, and a topic on each line.
func (r *Relay) texts(topics map[string]bool) (out []string) {
	b := r.node
	for t := range topics {
		if len(b)+1+len(t) > db.MaxAnnouncement {
			out = append(out, b)
			b = r.node
		}
		b += "\n" + t
	}
	return append(out, b)
}

func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
