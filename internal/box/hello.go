package box

import (
	"context"
	"encoding/base64"
	"log/slog"
	"runtime"
	"time"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/protocol"
)

// onState handles a change of the connection's state.
func (b *box) onState(s conn.State) {
	if !s.Connected && b.life.Err() != nil {
		return // the box itself has closed the connection
	}
	b.mu.Lock()
	known := b.cutOff == !s.Connected
	b.cutOff = !s.Connected
	b.greeted = b.greeted && s.Connected
	asks := !b.refusal
	foreign := conn.IsForeign(s.Err)
	refused := !s.Connected && (foreign || conn.IsRefused(s.Err))
	b.refusal = !s.Connected && (b.refusal || refused)
	b.mu.Unlock()
	if refused && asks {
		nudge(b.rotate) // only the answer over HTTPS says whether the refusal is final, and who the bus is now
	}
	if refused && asks && foreign {
		b.log.Error("the box refuses the bus, and asks its server over HTTPS how the bus is known", "error", s.Err)
		return
	}
	if !s.Connected {
		level := slog.LevelWarn
		if known { // another failed attempt to connect
			level = slog.LevelDebug
		}
		b.log.Log(b.life, level, "control plane out of reach", "error", s.Err)
		return
	}
	b.log.Info("connected to the control plane")
	nudge(b.online)
	nudge(b.beat)
}

// greet says hello on every new connection until it is answered, and applies the
// answer.
func (b *box) greet(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.online:
		}
		for ctx.Err() == nil {
			err := b.hello(ctx)
			if err == nil {
				break
			}
			b.log.Warn("hello not answered", "error", err)
			if b.conn.Wait(ctx) == nil {
				sleep(ctx, b.cfg.Timing.Retry)
			}
		}
	}
}

// maxSkew is the difference between the clocks above which hello logs it.
const maxSkew = 5 * time.Minute

func (b *box) hello(ctx context.Context) error {
	held := b.held()
	key := b.secret.Public()
	signature, err := b.keys.sign(protocol.KeyStatement(b.keys.get().Box, key))
	if err != nil {
		return err
	}
	in := protocol.Hello{
		Key: key, Signature: base64.StdEncoding.EncodeToString(signature),
		V: protocol.Version, Version: b.cfg.Version, Slots: b.cfg.Slots, Labels: b.cfg.Labels,
		OS: runtime.GOOS, Arch: runtime.GOARCH, Runs: []protocol.RunRef{}, Agents: []protocol.AgentInfo{},
		Isolation: []string{}, Holds: map[string][]string{},
	}
	for _, a := range held {
		in.Runs = append(in.Runs, a.ref())
	}
	found, lacking := b.setup.foundAgents()
	for _, f := range found {
		in.Agents = append(in.Agents, protocol.AgentInfo{Name: f.Name, Version: f.Version})
	}
	for _, l := range lacking {
		in.Agents = append(in.Agents, protocol.AgentInfo{Name: l.Agent, Missing: keepStart(l.String(), protocol.MaxMissing)})
	}
	in.Agents = append(in.Agents, protocol.AgentInfo{Name: commandAgent})
	for _, level := range b.setup.levels {
		in.Isolation = append(in.Isolation, string(level))
		in.Holds[string(level)] = b.setup.holding.at(level)
	}
	call, cancel := context.WithTimeout(ctx, b.cfg.Timing.Renew/2)
	defer cancel()
	sent := time.Now()
	var reply protocol.HelloReply
	if err := b.conn.Call(call, protocol.CallHello, in, &reply); err != nil {
		return err
	}
	b.noteClock(reply.ServerMS)
	if skew := time.Duration(b.skew.Load()) * time.Millisecond; skew.Abs() > maxSkew {
		b.log.Warn("the clock of this machine differs from the control plane's: far off, certificates are refused", "behind", skew)
	}
	if err := b.memory.setDraining(reply.Draining); err != nil {
		return err
	}
	verdicts := map[runKey]protocol.RunVerdict{}
	for _, v := range reply.Runs {
		verdicts[runKey{v.Run, v.Attempt}] = v
	}
	for _, a := range held {
		b.applyVerdict(a, verdicts[a.key()], sent)
	}
	b.mu.Lock()
	b.greeted = true
	b.mu.Unlock()
	nudge(b.freed)
	nudge(b.beat)
	nudge(b.commanded)
	return nil
}

// applyVerdict applies the control plane's verdict on one run. A missing verdict counts as
// one: a run that the answer does not name does not belong to this box.
func (b *box) applyVerdict(a *attempt, v protocol.RunVerdict, sent time.Time) {
	granted := time.Duration(v.LeaseMS) * time.Millisecond
	b.mu.Lock()
	_, orphan := b.orphans[a.key()]
	if orphan {
		delete(b.orphans, a.key())
	}
	if orphan && v.Do == protocol.DoContinue {
		b.runs[a.key()] = a
	}
	b.mu.Unlock()
	switch {
	case v.Do != protocol.DoContinue && orphan:
		b.discard(a, "the control plane does not want it")
	case v.Do != protocol.DoContinue:
		a.fence("the control plane does not want it")
	case orphan:
		a.lease = newLease(b.cfg.Timing, sent, granted)
		b.tasks.Go(func() { b.supervise(a, v.FromSeq, b.wrapUp) })
	default:
		a.lease.extend(sent, granted)
	}
}
