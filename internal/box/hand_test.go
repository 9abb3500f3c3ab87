package box_test

import (
	"context"
	"sync"
	"time"

	"yardmaster/internal/box"
)

// hand is a clock that a test moves by hand: a time is over when the test says so, and
// never before.
type hand struct {
	mu     sync.Mutex
	timers map[*handTimer]bool // those that run
}

type handTimer struct {
	clock *hand
	d     time.Duration
	fn    func()
}

// held gives a configuration a clock that is moved by hand.
func held(cfg *box.Config) *hand {
	h := &hand{timers: map[*handTimer]bool{}}
	*cfg = box.WithClock(*cfg, h)
	return h
}

func (h *hand) AfterFunc(d time.Duration, fn func()) box.Timer {
	t := &handTimer{clock: h, d: d, fn: fn}
	t.Reset(d)
	return t
}

func (h *hand) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := h.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { t.Stop(); cancel(context.Canceled) }
}

// over ends the time of all timers that run for d, and tells how many there were.
func (h *hand) over(d time.Duration) (n int) {
	h.mu.Lock()
	var due []*handTimer
	for t := range h.timers {
		if t.d == d {
			due = append(due, t)
			delete(h.timers, t)
		}
	}
	h.mu.Unlock()
	for _, t := range due {
		t.fn()
	}
	return len(due)
}

func (t *handTimer) Reset(d time.Duration) bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	ran := t.clock.timers[t]
	t.d, t.clock.timers[t] = d, true
	return ran
}

func (t *handTimer) Stop() bool {
	t.clock.mu.Lock()
	defer t.clock.mu.Unlock()
	ran := t.clock.timers[t]
	delete(t.clock.timers, t)
	return ran
}
