package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"yardmaster/internal/protocol"
)

// claimRuns keeps one claim waiting at the control plane while a slot is free, and
// starts the runs that it is given.
func (b *box) claimRuns(ctx context.Context) {
	for ctx.Err() == nil {
		if b.onTrial() {
			b.tryOut(ctx)
		} else if free, ok := b.ready(); !ok {
			select {
			case <-ctx.Done():
			case <-b.freed:
			case <-time.After(b.cfg.Timing.Beat): // no signal tells that the disk has space again
			}
		} else if err := b.claiming(func() error { return b.claimRun(ctx, free) }); err != nil && ctx.Err() == nil {
			b.log.Warn("claim failed", "error", err)
			if b.conn.Wait(ctx) == nil {
				sleep(ctx, b.cfg.Timing.Retry)
			}
		}
	}
}

// spaceToClaim is the free disk space in bytes that a claim needs, unless a tenth of the
// disk is less. A run without space on the disk wastes an attempt of its task.
const spaceToClaim = 256 << 20

// ready tells whether the box may claim, and for how many slots.
func (b *box) ready() (free int, ok bool) {
	if b.cannotRun() != "" {
		return 0, false
	}
	free, taking := b.free()
	b.mu.Lock()
	defer b.mu.Unlock()
	return free, taking && free > 0 && b.greeted
}

func (b *box) claimRun(ctx context.Context, free int) error {
	claim, err := b.memory.claim()
	if err != nil {
		return err
	}
	wait := b.cfg.Timing.ClaimWait
	call, cancel := context.WithTimeout(ctx, wait+b.cfg.Timing.Renew/2)
	defer cancel()
	sent := time.Now()
	var reply protocol.ClaimReply
	err = b.conn.Call(call, protocol.CallClaim, protocol.Claim{ID: claim, Free: free, WaitMS: wait.Milliseconds()}, &reply)
	switch {
	case err != nil:
		return err
	case slices.Contains(reply.Reasons, "claim_spent"):
		// The run of this claim is over; the box has missed it.
		return b.memory.claimed()
	case slices.Contains(reply.Reasons, "box_left"):
		// Another process of this box has said goodbye for both.
		b.greetAgain()
		return nil
	case reply.Run == nil:
		if len(reply.Reasons) > 0 {
			b.log.Debug("nothing to do", "reasons", reply.Reasons)
		}
		// The control plane answered at once and would do so again; pause before
		// asking.
		sleep(ctx, b.cfg.Timing.Retry-time.Since(sent))
		return nil
	case tooLate(time.Since(sent), time.Duration(reply.Run.LeaseMS)*time.Millisecond):
		// The answer was under way while the box was cut off. The same claim brings the
		// same run, with all of its lease, unless the control plane has given it up.
		b.log.Warn("a run came too late for its lease", "run", reply.Run.Run, "after", time.Since(sent))
		if b.late++; b.late < maxLate {
			return nil
		}
		b.late = 0
		return b.memory.claimed()
	}
	b.late = 0
	tokens, err := b.open(reply.Run.Run, reply.Sealed)
	if err != nil {
		err = fmt.Errorf("run %s: %w", reply.Run.Run, err)
		b.greetAgain()
		if b.unopened++; b.unopened < maxUnopened {
			return err // the same claim brings the same run, sealed anew
		}
		b.unopened = 0
		return errors.Join(err, b.memory.claimed())
	}
	b.unopened = 0
	reply.Run.ModelToken, reply.Run.GitToken = tokens.Model, tokens.Git
	return b.begin(*reply.Run, sent)
}

// tooLate tells whether so little is left of a lease that its run could end before it is
// renewed. A control plane holds a claim for half of that time at most.
func tooLate(after, lease time.Duration) bool { return after > protocol.KillAfter(lease)*5/8 }

// maxLate is how often in a row a run may come too late before its claim is given up.
const maxLate = 3

// maxUnopened is how often the box asks for a run whose tokens it cannot open.
const maxUnopened = 3

// greetAgain makes the box say hello before it claims again. It is needed when the
// control plane seals to another process than this one: an earlier one whose hello
// was delayed, or a thief.
func (b *box) greetAgain() {
	b.mu.Lock()
	b.greeted = false
	b.mu.Unlock()
	nudge(b.online)
}

// open opens the tokens of a run, which are sealed to this process.
func (b *box) open(run, sealed string) (out protocol.Tokens, err error) {
	text, err := b.secret.Open(protocol.TokensPurpose(run), sealed)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, errors.New("the tokens are not sealed to this process") // the cause could quote the tokens
	}
	return out, nil
}

// begin persists a run and starts it. The claim is used up once the run is on disk;
// until then it brings the same run again.
func (b *box) begin(start protocol.Start, sent time.Time) error {
	if err := checkStart(start); err != nil {
		return errors.Join(err, b.memory.claimed())
	}
	key := runKey{start.Run, start.Attempt}
	b.mu.Lock()
	held, leaving := b.runs[key] != nil || b.orphans[key] != nil, b.leaving
	b.mu.Unlock()
	if leaving && !held {
		return nil // the goodbye hands the run back; if it is lost, the same claim brings the run again
	}
	if held {
		return b.memory.claimed() // the answer was lost, the run is here
	}
	a := newAttempt(b.life, b.setup, start, b.log)
	a.lease = newLease(b.cfg.Timing, sent, time.Duration(start.LeaseMS)*time.Millisecond)
	err := a.persist()
	if err == nil {
		err = a.openSpool()
	}
	if err == nil {
		err = b.memory.claimed()
	}
	if err != nil {
		// The box has not accepted the run, so it goes to another box when its
		// lease ends. Claiming it again would only delay it.
		if a.spool != nil {
			err = errors.Join(err, a.spool.Close())
		}
		return errors.Join(err, b.memory.claimed(), a.removeFolders())
	}
	b.mu.Lock()
	b.runs[key] = a
	a.slot = true
	b.busy++
	b.mu.Unlock()
	a.log.Info("run claimed", "task", start.Task, "repo", start.Repo, "agent", start.Agent)
	if reason := b.unfitReason(); reason != "" {
		// The box became unfit while the claim was under way.
		a.end(ending{severity: graceful, state: protocol.Lost, kind: protocol.FailureBoxUnfit, detail: reason})
	} else if b.memory.draining() || b.isLeaving() {
		// The box stopped taking work while the claim was under way.
		a.end(ending{severity: graceful, state: protocol.Lost, kind: "box_drained", detail: "the box takes no work"})
	}
	b.tasks.Go(func() { b.supervise(a, 1, b.execute) })
	return nil
}

// checkStart refuses an id or attempt that could name a foreign folder or subject.
func checkStart(s protocol.Start) error {
	for _, c := range []byte(s.Run) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("the id of run %q is not one", s.Run)
		}
	}
	if s.Run == "" || s.Attempt < 1 {
		return fmt.Errorf("run %q, attempt %d is not one", s.Run, s.Attempt)
	}
	return nil
}
