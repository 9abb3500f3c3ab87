package box

import (
	"context"
	"errors"

	"yardmaster/internal/box/limits"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/protocol"
)

// limitKind is the failure kind of a run that exceeded a limit.
const limitKind = "resource_limit"

// agentNice is the nice value of agents, so that the box and other programs of the
// machine come before them where no control group shares the processors.
const agentNice = 10

// LimitNames lists the names that Config.Limits may use.
func LimitNames() []string { return limits.Names() }

// CheckLimits returns an error that says what is wrong with a text for
// Config.Limits, or nil.
func CheckLimits(text string) error {
	_, err := limits.Parse(text, limits.Limits{})
	return err
}

// openLimits finds out by which means this machine can hold runs to their limits.
func (b *box) openLimits() error {
	l, err := limits.Parse(b.cfg.Limits, limits.Default(b.cfg.Slots, b.setup.work))
	if err != nil {
		return err
	}
	b.limits = limits.New(limits.Config{
		Limits:  l,
		Slots:   b.cfg.Slots,
		Name:    workName(b.cfg.DataDir),
		Work:    b.setup.work,
		Watch:   b.cfg.WatchOnly,
		Logger:  b.log,
		Reserve: func(total int64) int64 { return min(spaceToClaim, total/10) },
	})
	b.setup.holding.noteLimits(b.limits.Held())
	return nil
}

func (b *box) closeLimits() {
	if err := b.limits.Close(); err != nil {
		b.log.Warn("control group not removed", "error", err)
	}
}

// startLimited starts a run's sandbox and holds it to the limits of the box. The caller
// calls done with the result when no process of the run is left.
func (b *box) startLimited(a *attempt, spec sandbox.Spec) (p *sandbox.Process, done func(result), err error) {
	r, err := b.limits.Begin(a.name(), append([]string{spec.Task, spec.Home}, spec.Writable...)...)
	if err != nil {
		return nil, nil, err
	}
	l := r.Limits()
	spec.Group = r.Group()
	spec.Limits = sandbox.Limits{
		Processes: r.ProcessCeiling(),
		FileBytes: uint64(l.FileBytes),
		OpenFiles: uint64(l.OpenFiles),
		TempBytes: uint64(l.Memory / 4),
		Nice:      agentNice,
	}
	// An agent can fill the disk before Start has returned: what it takes is looked up from
	// now on.
	a.limit(r)
	if p, err = sandbox.Start(a.killed, spec); err != nil {
		a.limit(nil)
		return nil, nil, errors.Join(err, r.Close())
	}
	r.Follow(p.PID(), spec.Level == sandbox.Bubblewrap, func(broken *limits.Breach) {
		a.exceed(broken)
		p.Kill()
	})
	return p, func(res result) {
		// An agent that a limit has stopped reports an error of its own. The limit
		// is looked up before Close deletes the record of it.
		if res.kind != "" || res.exit != nil && *res.exit != 0 || res.exit == nil && res.stop != "end_turn" {
			a.exceed(r.Check())
		}
		if err := r.Close(); err != nil {
			a.log.Warn("control group of the run not removed", "error", err)
		}
	}, nil
}

// limit names the run whose measured use spoolFull asks for; nil names none.
func (a *attempt) limit(r *limits.Run) {
	a.mu.Lock()
	a.limited = r
	a.mu.Unlock()
}

// name is the name of the attempt's folder.
func (a *attempt) name() string { return folderName(a.start.Run, a.start.Attempt) }

// exceed ends the attempt because of the limit in broken; nil does nothing.
func (a *attempt) exceed(broken *limits.Breach) {
	if broken == nil {
		return
	}
	a.mu.Lock()
	a.broken = broken
	a.mu.Unlock()
	a.end(ending{severity: graceful, state: protocol.Failed, kind: limitKind, detail: broken.Error()})
}

// spoolFull ends the attempt because the disk has no space for its events. If the
// attempt itself fills the disk, it ends because of that limit.
func (a *attempt) spoolFull(err error) {
	a.mu.Lock()
	r := a.limited
	a.mu.Unlock()
	if r != nil {
		a.exceed(r.Check())
	}
	a.end(ending{severity: graceful, state: protocol.Failed, kind: "storage_failed", detail: err.Error()})
}

// filledDisk tells whether the attempt was ended because of the disk space that it
// used.
func (a *attempt) filledDisk() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.broken != nil && a.broken.OnDisk()
}

// freed notes that the attempt has nothing on the disk any more.
func (a *attempt) freed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.limited != nil {
		a.limited.Freed()
	}
}

// awaitSpace waits until the runs that were ended for their use of the disk have
// been removed from it, and tells whether there were any.
func (b *box) awaitSpace(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.Timing.Wrap)
	defer cancel()
	return b.limits.Settle(ctx)
}
