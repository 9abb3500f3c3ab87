package box

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/box/worktree"
	"yardmaster/internal/protocol"
)

// commandAgent is the name that stands for running a program instead of an agent.
const commandAgent = "command"

// defaultTimeout limits a run whose start names no timeout.
const defaultTimeout = 4 * time.Hour

// result is the outcome of the agent's part of an attempt. A non-empty kind means
// failure.
type result struct {
	stop    string // why the agent stopped, in its own words
	session string
	text    string // its closing text
	exit    *int   // exit code of a command
	output  string // the end of a command's output
	usage   protocol.Usage
	kind    string // failure kind, empty for none
	detail  string
	busy    bool // the code host did not answer: another try may fare better
}

func failed(kind string, err error) result {
	if noSpace(err) {
		kind = "storage_failed"
	}
	return result{kind: kind, detail: err.Error(), busy: errors.Is(err, worktree.ErrBusy)}
}

// execute carries an attempt out, from its acceptance to its last event.
func (b *box) execute(a *attempt) {
	if !b.accept(a) {
		b.conclude(a, nil, result{})
		return
	}
	a.event(protocol.EventAccepted, nil)
	timeout := time.Duration(a.start.TimeoutMS) * time.Millisecond
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	limit := time.AfterFunc(timeout, func() {
		a.end(ending{
			severity: graceful, state: protocol.Failed,
			kind: "run_timeout", detail: fmt.Sprintf("the run took longer than %s", timeout),
		})
	})
	w, r := b.carry(a)
	limit.Stop()
	b.conclude(a, w, b.checkBox(a, r))
}

// accept tells the control plane that the run is on disk, and repeats it until it
// is answered or the run ends. It tells whether the run goes on.
func (b *box) accept(a *attempt) bool {
	ctx, cancel := a.untilAsked()
	defer cancel()
	for ctx.Err() == nil {
		sent := time.Now()
		call, done := context.WithTimeout(ctx, b.cfg.Timing.Renew/2)
		var r protocol.Renewal
		err := b.conn.Call(call, protocol.CallAccept, protocol.Accept{Run: a.start.Run, Attempt: a.start.Attempt}, &r)
		done()
		if err == nil {
			b.noteClock(r.ServerMS)
			a.applyGrant(sent, r)
			return ctx.Err() == nil
		}
		if ctx.Err() == nil {
			a.log.Warn("run not accepted yet", "error", err)
			sleep(ctx, b.cfg.Timing.Retry)
		}
	}
	return false
}

// untilAsked returns a context that ends when the attempt is asked to end, however
// gently.
func (a *attempt) untilAsked() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(a.killed)
	go func() {
		select {
		case <-a.asked:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// carry prepares the checkout and runs the agent in it.
func (b *box) carry(a *attempt) (*workspace, result) {
	level, err := b.isolation(a.start)
	if err != nil {
		return nil, failed("policy_refused", err)
	}
	a.event(protocol.EventPreparing, nil)
	ctx, cancel := a.untilAsked()
	defer cancel()
	if err := b.fetchSecrets(ctx, a); err != nil {
		return nil, failed("setup_failed", err)
	}
	w, err := b.prepare(ctx, a)
	if noSpace(err) && b.awaitSpace(ctx) {
		w, err = b.prepare(ctx, a) // another run had filled the disk, and is gone
	}
	if err != nil {
		return nil, failed("checkout_failed", err)
	}
	defer a.leaveEnvironment()
	if err := b.environment(ctx, a, w, level); err != nil {
		return w, failed("setup_failed", err)
	}
	a.event(protocol.EventPrepared, w.prepared())
	a.start.Prompt += lackNote(w.lacks)
	for _, dir := range []string{outboxDir, artifactsDir} {
		if err := os.MkdirAll(filepath.Join(a.homePath(), dir), 0o700); err != nil {
			return w, failed("setup_failed", err)
		}
	}
	if err := a.identity().Save(filepath.Join(a.homePath(), ".gitconfig")); err != nil {
		return w, failed("setup_failed", err)
	}
	if a.start.Agent == commandAgent {
		r := b.runCommand(ctx, a, w, level)
		r.output = w.lacked() + r.output
		return w, r
	}
	return w, b.runAgent(ctx, a, w, level)
}

// isolation chooses the level for a run: the best level of this box, or, if the run
// demands one, the best that is at least as strong and holds what it promises.
func (b *box) isolation(start protocol.Start) (sandbox.Level, error) {
	best := b.setup.levels[0]
	least := sandbox.Level(start.Isolation)
	if least == "" || least == sandbox.None {
		return best, nil
	}
	for _, l := range b.setup.levels {
		if l.AtLeast(least) && b.setup.holding.keeps(l) {
			return l, nil
		}
	}
	return "", fmt.Errorf("the run demands isolation by %s, the best of this box is %s, which holds %v",
		least, best, b.setup.holding.at(best))
}
