package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// How many envelopes are on their way into the database at once. A box that
// hands in more waits behind itself first, and only then behind others.
const (
	throughGate = 64
	ofOneBox    = 32
)

// gate lets events into the database.
type gate struct {
	mu     sync.Mutex
	all    *semaphore.Weighted
	boxes  map[string]*turn
	inside map[*time.Time]bool
}

// turn is one box's.
type turn struct {
	room  *semaphore.Weighted
	users int
}

// enter waits until there is room; leave makes it again.
func (g *gate) enter(ctx context.Context, boxID string) (leave func(), err error) {
	g.mu.Lock()
	if g.all == nil {
		g.all, g.boxes, g.inside = semaphore.NewWeighted(throughGate), map[string]*turn{}, map[*time.Time]bool{}
	}
	t := g.boxes[boxID]
	if t == nil {
		t = &turn{room: semaphore.NewWeighted(ofOneBox)}
		g.boxes[boxID] = t
	}
	t.users++
	g.mu.Unlock()
	gone := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(g.boxes, boxID)
		}
	}
	if err := t.room.Acquire(ctx, 1); err != nil {
		gone()
		return nil, err
	}
	if err := g.all.Acquire(ctx, 1); err != nil {
		t.room.Release(1)
		gone()
		return nil, err
	}
	began := time.Now()
	g.mu.Lock()
	g.inside[&began] = true
	g.mu.Unlock()
	return func() {
		g.mu.Lock()
		delete(g.inside, &began)
		g.mu.Unlock()
		g.all.Release(1)
		t.room.Release(1)
		gone()
	}, nil
}

// oldest is for how long the oldest of those inside has been.
func (g *gate) oldest() (age time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for began := range g.inside {
		age = max(age, time.Since(*began))
	}
	return age
}

// stuckAfter is how long storing an envelope may take while all is well.
const stuckAfter = 15 * time.Second

// Stuck tells whether events are not getting into the database.
func (s *Service) Stuck() error {
	if age := s.gate.oldest(); age > stuckAfter {
		return fmt.Errorf("run: events have waited %s to be stored", age.Round(time.Second))
	}
	return nil
}
