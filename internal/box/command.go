package box

import (
	"context"
	"errors"
	"fmt"

	"yardmaster/internal/box/driver"
	"yardmaster/internal/protocol"
)

// nudged handles a nudge of the control plane. It only makes the box ask sooner:
// nudges are not authenticated, so they must not command the box.
func (b *box) nudged(verb string) {
	switch verb {
	case protocol.NudgeCommands:
		nudge(b.commanded)
	case protocol.NudgeProve:
		nudge(b.rotate)
	default:
		b.log.Debug("unknown nudge", "verb", verb)
	}
}

// readCommands fetches the box's commands whenever there may be some.
func (b *box) readCommands(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-b.commanded:
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = b.fetchCommands(ctx); err != nil && ctx.Err() == nil {
				b.log.Warn("commands not taken, they will come again", "error", err)
				if more = b.conn.Wait(ctx) == nil; more {
					sleep(ctx, b.cfg.Timing.Retry)
				}
			}
		}
	}
}

// fetchCommands takes the oldest commands one after the other and reports which it
// has taken. If a command fails, later ones about the same run, or about the box,
// wait behind it so that they keep their order; halts and the commands of other
// runs do not wait.
func (b *box) fetchCommands(ctx context.Context) (more bool, err error) {
	call, cancel := context.WithTimeout(ctx, b.cfg.Timing.Renew)
	defer cancel()
	var got protocol.Commands
	if err := b.conn.Call(call, protocol.CallCommands, struct{}{}, &got); err != nil {
		return false, err
	}
	var done protocol.Done
	stuck := map[string]bool{} // ids of runs; "" is the box
	for _, c := range got.Commands {
		if stuck[c.Run] && c.Kind != protocol.CommandHalt {
			continue
		}
		if failed := b.take(c); failed != nil {
			err, stuck[c.Run] = errors.Join(err, failed), true
			continue
		}
		done.IDs = append(done.IDs, c.ID)
	}
	if len(done.IDs) == 0 {
		return false, err
	}
	if said := b.conn.Call(call, protocol.CallDone, done, nil); said != nil {
		err = errors.Join(err, said)
	}
	return got.More, err
}

// take carries a command out once, however often it arrives. It returns nil when
// the part of it that must survive a restart is on disk.
func (b *box) take(c protocol.Command) error {
	b.taking.Lock()
	defer b.taking.Unlock()
	if b.memory.knows(c.ID) {
		return nil
	}
	b.log.Info("command", "id", c.ID, "kind", c.Kind, "run", c.Run, "mode", c.Mode, "reason", c.Reason)
	if err := b.carryOut(c); err != nil {
		return fmt.Errorf("%s: %w", c.Kind, err)
	}
	return b.memory.remember(c.ID)
}

func (b *box) carryOut(c protocol.Command) error {
	switch c.Kind {
	case protocol.CommandMessage:
		if a := b.find(c); a != nil {
			return b.message(a, c)
		}
	case protocol.CommandHalt:
		if a := b.find(c); a != nil {
			return b.halt(a, c)
		}
	case protocol.CommandDrain:
		return b.drain(c)
	case protocol.CommandResume:
		err := b.memory.setDraining(false)
		nudge(b.freed)
		nudge(b.beat)
		return err
	case protocol.CommandRotate:
		nudge(b.rotate)
	case protocol.CommandUpdate:
		if b.cfg.Programs != nil {
			return b.takeUpdate(c)
		}
		b.refuse(c)
	default:
		b.refuse(c)
	}
	return nil
}

// refuse reports that the box does not carry out a command: in the log, and in an
// event of the run that the command names.
func (b *box) refuse(c protocol.Command) {
	r := protocol.CommandRefused{
		ID: c.ID, Kind: c.Kind,
		Reason: "This box, version " + b.cfg.Version + ", does not support it.",
	}
	b.log.Warn("command refused", "id", c.ID, "kind", c.Kind)
	if a := b.find(c); a != nil && !isDone(a.ended) {
		a.event(protocol.EventUnknown, r)
	}
}

// find returns the attempt that a command names, nil if the box does not hold it
// any more.
func (b *box) find(c protocol.Command) *attempt {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := runKey{c.Run, c.Attempt}
	if a := b.runs[key]; a != nil {
		return a
	}
	return b.orphans[key]
}

// message hands a person's message to the agent. The event keeps the message.
func (b *box) message(a *attempt, c protocol.Command) error {
	if isDone(a.ended) {
		return nil
	}
	m := protocol.UserMessage{ID: c.ID, State: protocol.MessageQueued, Text: c.Text, Answers: c.Answers}
	if a.start.Agent == commandAgent {
		m.State = protocol.MessageDropped // a command takes no messages
		return a.spool.Append(protocol.EventMessage, m)
	}
	// The event is spooled first, so that it precedes the events of its turn.
	if err := a.spool.Append(protocol.EventMessage, m); err != nil {
		return err
	}
	if err := a.say(driver.Message{ID: c.ID, Text: c.Text, Interrupt: c.Interrupt}); err != nil {
		a.log.Warn("message dropped", "id", c.ID, "error", err)
		return a.spool.Append(protocol.EventMessage, protocol.UserMessage{ID: c.ID, State: protocol.MessageDropped})
	}
	return nil
}

// halt ends a run by command. The command is written to disk, so that a box that
// dies meanwhile still knows it; a full disk does not delay the halt.
func (b *box) halt(a *attempt, c protocol.Command) error {
	err := writeJSON(a.haltPath(), c)
	a.end(haltEnding(c))
	return err
}

func haltEnding(c protocol.Command) ending {
	e := ending{severity: graceful, state: protocol.Halted, detail: c.Reason}
	if c.Mode == protocol.HaltNow {
		e.severity = haltNow
	}
	return e
}

// drain stops taking work. Running attempts finish, unless a mode says to give them
// back: gracefully with their work saved, or now.
func (b *box) drain(c protocol.Command) error {
	if err := b.memory.setDraining(true); err != nil {
		return err
	}
	switch c.Mode {
	case protocol.HaltGraceful:
		b.giveBack(graceful, "the box was drained")
	case protocol.HaltNow:
		b.giveBack(haltNow, "the box was drained")
	}
	nudge(b.beat)
	return nil
}
