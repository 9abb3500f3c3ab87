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

// channel is what nodes announce their notices on.
const channel = "yardmaster_notices"

// relayEvery is how long notices are gathered before they go out together.
const relayEvery = 5 * time.Millisecond

// Relay carries the notices of a hub to the hubs of the other nodes of a
// database, and theirs to it.
type Relay struct {
	db     *db.DB
	hub    *Hub
	logger *slog.Logger
	node   string

	mu     sync.Mutex
	topics map[string]bool // to be sent
	some   chan struct{}   // holds one: there are topics
}

// NewRelay connects a hub that was just made to those of other nodes.
func NewRelay(d *db.DB, h *Hub, logger *slog.Logger) *Relay {
	r := &Relay{db: d, hub: h, logger: logger, node: id.New(), topics: map[string]bool{}, some: make(chan struct{}, 1)}
	h.relay = r.add
	return r
}

// add has topics sent soon.
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

// Loop sends and hears until ctx ends. While the database cannot be reached
// notices are lost; once it can, everybody who waits is woken.
func (r *Relay) Loop(ctx context.Context) error {
	var sending sync.WaitGroup
	sending.Go(func() { r.send(ctx) })
	defer sending.Wait()
	for {
		err := r.db.Listen(ctx, channel, r.hub.HearAll, r.hear)
		if ctx.Err() != nil {
			return nil
		}
		r.logger.WarnContext(ctx, "notices of other nodes are not heard for a moment", slog.Any("error", err))
		if !wait(ctx, time.Second) {
			return nil
		}
	}
}

// hear wakes those who wait here for what another node has told.
func (r *Relay) hear(text string) {
	node, topics, _ := strings.Cut(text, "\n")
	if node != r.node {
		r.hub.Hear(strings.Split(topics, "\n")...)
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

// texts are the announcements of topics: the node, and a topic on each line.
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
