package box

import (
	"cmp"
	"context"
	"slices"
	"time"

	"yardmaster/internal/protocol"
)

// The states of a box in its presence.
const (
	stateReady    = "ready"
	stateDraining = "draining"
	stateDrained  = "drained"
	stateUnfit    = "unfit"
	stateLeft     = protocol.PresenceLeft
)

// present sends beats until ctx is done. It starts first, and depends on nothing
// but the clock: cloning may take minutes.
func (b *box) present(ctx context.Context) {
	unfit := ""
	for {
		p := b.presence()
		switch {
		case p.Unfit == unfit:
		case p.Unfit != "":
			b.log.Error("the box is unfit and takes no work", "reason", p.Unfit)
		default:
			b.log.Info("the box is fit again")
		}
		unfit = p.Unfit
		if err := b.sendBeat(ctx, p); err != nil {
			b.log.Debug("no beat", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-b.beat:
		case <-time.After(b.cfg.Timing.Beat):
		}
	}
}

// sendBeat reports the state of the box. A beat that fails is not repeated, because
// the next one replaces it.
func (b *box) sendBeat(ctx context.Context, p protocol.Presence) error {
	b.beating.Lock()
	defer b.beating.Unlock()
	if b.lastSent {
		return nil
	}
	b.lastSent = p.State == stateLeft
	if !b.lastSent { // nothing replaces the goodbye, which has the time of its caller
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, b.cfg.Timing.Beat)
		defer cancel()
	}
	p.V = protocol.Version
	var reply protocol.BeatReply
	if err := b.conn.Call(ctx, protocol.CallBeat, p, &reply); err != nil {
		return err
	}
	b.noteClock(reply.ServerMS)
	if reply.Commands {
		nudge(b.commanded)
	}
	return nil
}

// sayGoodbye tells the control plane that this process ends, so that it takes back
// a run that it may have given to an abandoned claim. If the goodbye is lost, the
// lease of that run expires.
func (b *box) sayGoodbye() {
	p := b.presence()
	p.State, p.Free = stateLeft, 0
	ctx, cancel := b.cfg.clock.WithTimeout(b.life, goodbyeWait)
	defer cancel()
	b.tasks.Go(func() { // waits for a beat that is under way
		defer cancel()
		if err := b.sendBeat(ctx, p); err != nil {
			b.log.Debug("left without a goodbye", "error", err)
		}
	})
	<-ctx.Done()
}

func (b *box) presence() protocol.Presence {
	p := protocol.Presence{
		Version: b.cfg.Version, State: stateReady, Slots: b.cfg.Slots, SkewMS: b.skew.Load(),
	}
	p.DiskFree, _ = diskFree(b.cfg.DataDir)
	for _, a := range b.held() {
		p.Runs = append(p.Runs, a.ref())
		p.SpoolBytes += a.spool.Bytes()
	}
	slices.SortFunc(p.Runs, func(x, y protocol.RunRef) int { return cmp.Compare(x.Run, y.Run) })
	free, taking := b.free()
	p.Update = b.updateReport()
	p.Unfit, p.UnfitFor = b.cannotRun(), b.unfitFor.now()
	switch {
	case taking && p.Unfit != "":
		p.State = stateUnfit
	case taking:
		p.Free = free
	case len(p.Runs) == 0:
		p.State = stateDrained
	default:
		p.State = stateDraining
	}
	return p
}

// free returns how many slots are free, and whether the box takes work at all.
func (b *box) free() (slots int, taking bool) {
	draining := b.memory.draining()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.cfg.Slots - b.busy, !draining && !b.leaving && !b.update.clearing
}

// noteClock notes the control plane's clock, which is only displayed.
func (b *box) noteClock(serverMS int64) {
	if serverMS != 0 {
		b.skew.Store(serverMS - time.Now().UnixMilli())
	}
}
