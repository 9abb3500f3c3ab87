package box

import (
	"context"
	"time"
)

// clock tells a box when a time is over. It is the real one but in tests, which then say
// themselves when a time is over, however fast the machine is.
type clock interface {
	// AfterFunc is time.AfterFunc.
	AfterFunc(d time.Duration, fn func()) timer
	// WithTimeout is context.WithTimeout.
	WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc)
}

// timer is what a *time.Timer of time.AfterFunc does.
type timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

type realClock struct{}

func (realClock) AfterFunc(d time.Duration, fn func()) timer { return time.AfterFunc(d, fn) }

func (realClock) WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}
