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

// claimRuns keeps one claim waiting at the control plane for as long as a slot
// is free, and starts what it brings.
func (b *box) claimRuns(ctx context.Context) {
	for ctx.Err() == nil {
		if free, ok := b.ready(); !ok {
			select {
			case <-ctx.Done():
			case <-b.freed:
			case <-time.After(b.cfg.Timing.Beat): // room on the disk comes about without a word
			}
		} else if err := b.claimRun(ctx, free); err != nil && ctx.Err() == nil {
			b.log.Warn("claim failed", "error", err)
			if b.conn.Wait(ctx) == nil {
				sleep(ctx, b.cfg.Timing.Retry)
			}
		}
	}
}

// roomToClaim is how much of the disk has to be free, unless a tenth of it is
// less: a run that finds no room is a try of its task wasted.
const roomToClaim = 256 << 20

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
		// The run this claim brought is over; the box has missed it.
		return b.memory.claimed()
	case slices.Contains(reply.Reasons, "box_left"):
		// Another process of this box has said goodbye for both.
		b.greetAgain()
		return nil
	case reply.Run == nil:
		if len(reply.Reasons) > 0 {
			b.log.Debug("nothing to do", "reasons", reply.Reasons)
		}
		// An answer that came at once says so again; it need not do so often.
		sleep(ctx, b.cfg.Timing.Retry-time.Since(sent))
		return nil
	}
	tokens, err := b.open(reply.Run.Run, reply.Sealed)
	if err != nil {
		err = fmt.Errorf("run %s: %w", reply.Run.Run, err)
		b.greetAgain()
		if b.unread++; b.unread < unreadMost {
			return err // the same claim brings the same run, sealed anew
		}
		b.unread = 0
		return errors.Join(err, b.memory.claimed())
	}
	b.unread = 0
	reply.Run.ModelToken, reply.Run.GitToken = tokens.Model, tokens.Git
	return b.begin(*reply.Run, sent)
}

// unreadMost is how often a run whose tokens cannot be read is asked for.
const unreadMost = 3

// greetAgain makes the box say hello before it claims again. The control plane
// seals to another process than this one: one before it, whose hello was on its
// way for long, or a thief.
func (b *box) greetAgain() {
	b.mu.Lock()
	b.greeted = false
	b.mu.Unlock()
	nudge(b.online)
}

// open reads the tokens of a run, which are sealed to this process.
func (b *box) open(run, sealed string) (out protocol.Tokens, err error) {
	text, err := b.secret.Open(protocol.TokensPurpose(run), sealed)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, errors.New("the tokens are not sealed to this process") // the cause could quote them
	}
	return out, nil
}

// begin persists a run and sets it going. The claim is done with once the run
// is on disk; until then it brings the same run again.
func (b *box) begin(start protocol.Start, sent time.Time) error {
	if err := checkStart(start); err != nil {
		return errors.Join(err, b.memory.claimed())
	}
	key := runKey{start.Run, start.Attempt}
	b.mu.Lock()
	held, leaving := b.runs[key] != nil || b.orphans[key] != nil, b.leaving
	b.mu.Unlock()
	if leaving && !held {
		return nil // the goodbye hands it back; unheard, the same claim brings it again
	}
	if held {
		return b.memory.claimed() // the answer was lost, the run was not
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
		// Not accepted, the run goes to another box when its lease is over;
		// claiming it again would only hold it up.
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
		// The same, when the box became unfit.
		a.end(ending{press: graceful, state: protocol.Lost, kind: protocol.FailureBoxUnfit, detail: reason})
	} else if _, taking := b.free(); !taking {
		// The claim was on its way when the box stopped to take work.
		a.end(ending{press: graceful, state: protocol.Lost, kind: "box_drained", detail: "the box takes no work"})
	}
	b.tasks.Go(func() { b.supervise(a, 1, b.execute) })
	return nil
}

// checkStart refuses what would name a folder or a subject that it should not.
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
