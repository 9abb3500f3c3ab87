package box

import (
	"context"
	"errors"

	"yardmaster/internal/box/limits"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/protocol"
)

// limitKind is the failure kind of a run that took more than it may.
const limitKind = "resource_limit"

// agentNice is how far the box, and whatever else the machine does, goes before
// agents where no control group shares the processors out.
const agentNice = 10

// LimitNames are the parts of Config.Limits.
func LimitNames() []string { return limits.Names() }

// CheckLimits tells what is wrong with a text for Config.Limits.
func CheckLimits(text string) error {
	_, err := limits.Parse(text, limits.Limits{})
	return err
}

// openLimits finds out how runs are held to their limits here.
func (b *box) openLimits() error {
	l, err := limits.Parse(b.cfg.Limits, limits.Default(b.cfg.Slots, b.setup.work))
	if err != nil {
		return err
	}
	b.limits = limits.New(limits.Config{
		Limits: l, Slots: b.cfg.Slots, Name: workName(b.cfg.DataDir), Work: b.setup.work, Watch: b.cfg.WatchOnly, Logger: b.log,
		Reserve: func(total int64) int64 { return min(roomToClaim, total/10) },
	})
	b.setup.holding.bounded(b.limits.Held())
	return nil
}

func (b *box) closeLimits() {
	if err := b.limits.Close(); err != nil {
		b.log.Warn("control group not removed", "error", err)
	}
}

// bound starts a run's sandbox and holds it to the limits of the box. done is
// to be called when nothing of it runs any more, with what has come of it.
func (b *box) bound(a *attempt, spec sandbox.Spec) (p *sandbox.Process, done func(result), err error) {
	r, err := b.limits.Begin(a.name(), spec.Task, spec.Home)
	if err != nil {
		return nil, nil, err
	}
	l := r.Limits()
	spec.Group = r.Group()
	spec.Limits = sandbox.Limits{
		Processes: r.Fence(), FileBytes: uint64(l.FileBytes), OpenFiles: uint64(l.OpenFiles), TempBytes: uint64(l.Memory / 4), Nice: agentNice,
	}
	if p, err = sandbox.Start(a.killed, spec); err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	a.mu.Lock()
	a.limited = r
	a.mu.Unlock()
	r.Follow(p.PID(), spec.Level == sandbox.Bubblewrap, func(broken *limits.Breach) {
		a.exceed(broken)
		p.Kill()
	})
	return p, func(res result) {
		// What a limit has stopped fails in its own words. Why is looked up before
		// the record of it goes.
		if res.kind != "" || res.exit != nil && *res.exit != 0 || res.exit == nil && res.stop != "end_turn" {
			a.exceed(r.Check())
		}
		if err := r.Close(); err != nil {
			a.log.Warn("control group of the run not removed", "error", err)
		}
	}, nil
}

// name is that of the attempt's folder.
func (a *attempt) name() string { return folderName(a.start.Run, a.start.Attempt) }

// exceed ends the attempt for a limit that it has broken, if it has.
func (a *attempt) exceed(broken *limits.Breach) {
	if broken == nil {
		return
	}
	a.mu.Lock()
	a.broken = broken
	a.mu.Unlock()
	a.end(ending{press: graceful, state: protocol.Failed, kind: limitKind, detail: broken.Error()})
}

// full ends the attempt because its events find no room on the disk. If it is
// itself what fills that, it ends for the limit.
func (a *attempt) full(err error) {
	a.mu.Lock()
	r := a.limited
	a.mu.Unlock()
	if r != nil {
		a.exceed(r.Check())
	}
	a.end(ending{press: graceful, state: protocol.Failed, kind: "storage_failed", detail: err.Error()})
}

// filledDisk tells whether the attempt was ended for the room that it takes.
func (a *attempt) filledDisk() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.broken != nil && a.broken.OnDisk()
}

// freed says that nothing of the attempt is on the disk any more.
func (a *attempt) freed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limited != nil {
		a.limited.Freed()
	}
}

// awaitRoom waits until the runs that were ended for the room they took have
// left the disk, and tells whether there were any.
func (b *box) awaitRoom(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timing.Wrap)
	defer cancel()
	return b.limits.Settle(ctx)
}
