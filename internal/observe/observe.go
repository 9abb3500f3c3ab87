// Package observe carries facts about a request to the request's record, and the
// passes of loops to their counters. The package knows neither HTTP nor capabilities
// nor metrics, so every package may import it. Package telemetry writes the records,
// serves the metrics and sends the traces.
package observe

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"
)

// Request holds the facts that become known of a request while it is served. One
// goroutine at a time writes them.
type Request struct {
	ID      string
	Address string // of the caller, past trusted proxies
	Surface string // rest, mcp, git, gateway
	// Path is the path to show, without the query and without secrets. Empty: the
	// path that was asked for, scrubbed.
	Path       string
	Pattern    string // of the route, such as /v1/tasks/{id}; empty: none matched
	Capability string // id of the row; empty: none matched
	Account    string // id
	Actor      string // kind and id, never a secret
	Slug       string // of the problem that was answered
	Cause      error  // of a failure, for the log
	// Broken tells that the answer failed after its status was sent.
	Broken bool
}

type requestKey struct{}

// With returns a context that belongs to r. With a nil r the context belongs to no
// request.
func With(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// Of returns the request that ctx belongs to. Outside of a request it returns a new
// value, which is not recorded.
func Of(ctx context.Context) *Request {
	if r, _ := ctx.Value(requestKey{}).(*Request); r != nil {
		return r
	}
	return &Request{}
}

// Inside tells whether ctx belongs to a request, so that facts noted in it are
// recorded.
func Inside(ctx context.Context) bool {
	r, _ := ctx.Value(requestKey{}).(*Request)
	return r != nil
}

// Loops counts passes of loops.
type Loops interface {
	// Pass is told of the end of a pass.
	Pass(loop string, took time.Duration)
	// Failed is told once of each pass in which something failed.
	Failed(loop string)
}

type (
	loopsKey struct{}
	passKey  struct{}
)

// Counting returns a context whose passes are told to l.
func Counting(ctx context.Context, l Loops) context.Context {
	return context.WithValue(ctx, loopsKey{}, l)
}

// pass is a pass of a loop.
type pass struct {
	loop   string
	loops  Loops
	failed atomic.Bool
}

// Pass begins a pass of a loop, whose name is the package and the task in lower case,
// such as mails.sweep. Errors in the returned context are reported with Failed. The
// caller calls end when the pass is over.
func Pass(ctx context.Context, loop string) (in context.Context, end func()) {
	loops, _ := ctx.Value(loopsKey{}).(Loops)
	if loops == nil {
		return ctx, func() {}
	}
	begun := time.Now()
	return context.WithValue(ctx, passKey{}, &pass{loop: loop, loops: loops}), func() { loops.Pass(loop, time.Since(begun)) }
}

// Every calls pass at once, and after each interval every, until ctx ends. Each call is a pass of
// the loop, see Pass.
func Every(ctx context.Context, loop string, every time.Duration, pass func(context.Context)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		in, end := Pass(ctx, loop)
		pass(in)
		end()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Failed notes that something failed in the pass that ctx belongs to, if err is
// an error and ctx has not ended: a loop that is stopped has not failed. It may
// be called after the end of the pass, by work that the pass has started.
func Failed(ctx context.Context, err error) {
	p, _ := ctx.Value(passKey{}).(*pass)
	if p != nil && err != nil && ctx.Err() == nil && p.failed.CompareAndSwap(false, true) {
		p.loops.Failed(p.loop)
	}
}

// Complain notes a failure as Failed does, and logs it: what could not be done, why, and
// the attributes of what it was done to. A loop that is stopped has nothing to complain of.
func Complain(ctx context.Context, logger *slog.Logger, what string, err error, about ...any) {
	Failed(ctx, err)
	if ctx.Err() == nil {
		logger.ErrorContext(ctx, what, append(about, slog.Any("error", err))...)
	}
}
