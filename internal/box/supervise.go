package box

import (
	"context"
	"sync"

	"yardmaster/internal/protocol"
)

// supervise sees an attempt through: it keeps the lease, sends the events starting
// with the number from, and calls work. It deletes the attempt once the control
// plane has committed all events or has given the run to another box. If this
// process ends first, everything stays for the next one.
func (b *box) supervise(a *attempt, from int64, work func(*attempt)) {
	ctx, stop := context.WithCancel(b.life)
	defer stop()
	var tasks sync.WaitGroup
	tasks.Go(func() { b.keepLease(ctx, a) })
	tasks.Go(func() { b.send(ctx, a, from) })
	tasks.Go(func() { b.watchLease(ctx, a) })
	tasks.Go(func() { a.announce(ctx) })
	work(a)
	a.kill()
	close(a.ended)
	b.release(a)
	switch {
	case b.life.Err() != nil, a.spool.Ended():
	default:
		// The last event found no space on the disk. Without it the lease runs out,
		// and the control plane decides by itself.
		a.fence("its end could not be recorded")
	}
	select {
	case <-a.fenced:
	case <-a.saved:
	case <-b.life.Done():
	}
	keep := !isDone(a.fenced) && !isDone(a.saved)
	stop()
	tasks.Wait()
	defer a.freed()
	if !keep {
		b.remove(a)
	} else if err := a.spool.Close(); err != nil {
		a.log.Warn("spool not closed", "error", err)
	}
	b.forget(a)
}

// watchLease kills the attempt when its lease runs out before it has ended.
func (b *box) watchLease(ctx context.Context, a *attempt) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		select {
		case <-a.ended:
		case <-ctx.Done():
		}
	}()
	if !a.lease.watch(ctx) {
		return
	}
	a.end(ending{severity: leaseLost, state: protocol.Lost, kind: "lease_expired", detail: "the control plane could not be reached"})
}

// announce tells the control plane that the attempt was asked to end.
func (a *attempt) announce(ctx context.Context) {
	defer close(a.announced)
	select {
	case <-ctx.Done():
	case <-a.asked:
		if e := a.endingNow(); e.severity == graceful || e.severity == haltNow {
			a.event(protocol.EventHalting, map[string]string{"reason": e.detail, "failure_kind": e.kind})
		}
	}
}

// release frees the attempt's slot.
func (b *box) release(a *attempt) {
	b.mu.Lock()
	if a.slot {
		a.slot = false
		b.busy--
	}
	b.mu.Unlock()
	nudge(b.freed)
	nudge(b.beat)
}

func (b *box) forget(a *attempt) {
	b.mu.Lock()
	delete(b.runs, a.key())
	b.mu.Unlock()
	nudge(b.freed)
	nudge(b.beat)
}

// remove deletes everything that is left of an attempt.
func (b *box) remove(a *attempt) {
	if err := a.spool.Close(); err != nil {
		a.log.Debug("spool not closed", "error", err)
	}
	if w := a.workspace; w != nil {
		if err := w.remove(); err != nil {
			a.log.Warn("checkout not removed", "error", err)
		}
	}
	if err := a.removeFolders(); err != nil {
		a.log.Warn("run not removed from the disk", "error", err)
	}
}
