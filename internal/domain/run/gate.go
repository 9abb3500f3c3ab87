package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// The limits of envelopes that are being stored at once. Further envelopes of a
// box wait for that box's own before they wait for other boxes'.
const (
	maxEnvelopes = 64
	maxOfBox     = 32
)

// gate limits how many envelopes are stored at once.
type gate struct {
	mu    sync.Mutex
	all   *semaphore.Weighted
	boxes map[string]*boxGate
	began map[*time.Time]bool
}

// boxGate is the part of the gate for one box.
type boxGate struct {
	slots *semaphore.Weighted
	users int
}

// enter waits until the envelope may be stored. The caller calls leave when
// that is done. The error is that of ctx.
func (g *gate) enter(ctx context.Context, boxID string) (leave func(), err error) {
	g.mu.Lock()
	if g.all == nil {
		g.all, g.boxes, g.began = semaphore.NewWeighted(maxEnvelopes), map[string]*boxGate{}, map[*time.Time]bool{}
	}
	t := g.boxes[boxID]
	if t == nil {
		t = &boxGate{slots: semaphore.NewWeighted(maxOfBox)}
		g.boxes[boxID] = t
	}
	t.users++
	g.mu.Unlock()
	release := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(g.boxes, boxID)
		}
	}
	if err := t.slots.Acquire(ctx, 1); err != nil {
		release()
		return nil, err
	}
	if err := g.all.Acquire(ctx, 1); err != nil {
		t.slots.Release(1)
		release()
		return nil, err
	}
	began := time.Now()
	g.mu.Lock()
	g.began[&began] = true
	g.mu.Unlock()
	return func() {
		g.mu.Lock()
		delete(g.began, &began)
		g.mu.Unlock()
		g.all.Release(1)
		t.slots.Release(1)
		release()
	}, nil
}

// oldest returns how long the oldest envelope in the gate has been there.
func (g *gate) oldest() (age time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for began := range g.began {
		age = max(age, time.Since(*began))
	}
	return age
}

// stuckAfter is how long storing an envelope may take while the database is
// well.
const stuckAfter = 15 * time.Second

// Stuck returns an error if an envelope has waited to be stored for longer than
// stuckAfter.
func (s *Service) Stuck() error {
	if age := s.gate.oldest(); age > stuckAfter {
		return fmt.Errorf("run: events have waited %s to be stored", age.Round(time.Second))
	}
	return nil
}
