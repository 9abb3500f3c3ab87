package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"yardmaster/internal/agent"
	"yardmaster/internal/bus/boxconn"
	"yardmaster/internal/protocol"
)

// box is a simulated one: a real connection with a real identity, and no
// machine behind it.
type box struct {
	conn   *boxconn.Conn
	claims atomic.Int64
	stop   context.CancelFunc
}

// callTime bounds one call of a box.
const callTime = 30 * time.Second

// join enrolls a box and has it say hello and beat.
func (w *world) join(ctx context.Context, name string, slots int) (*box, error) {
	var minted struct{ Token string }
	if err := w.api.Call(ctx, http.MethodPost, "/v1/runners/enrollments", map[string]any{"name": name}, &minted); err != nil {
		return nil, err
	}
	who, err := agent.Enroll(ctx, w.url, minted.Token, agent.Info{Name: name, Version: "bench", Slots: slots})
	if err != nil {
		return nil, err
	}
	b := &box{}
	b.conn, err = boxconn.Dial(who.NATSURL, who.Box, func() (string, []byte) { return who.NATSJWT.Value, []byte(who.Seed) }, boxconn.Options{})
	if err != nil {
		return nil, err
	}
	if err := b.conn.Wait(ctx); err != nil {
		return nil, err
	}
	err = b.call(ctx, protocol.CallHello, protocol.Hello{
		V: protocol.Version, Version: "bench", Slots: slots, Runs: []protocol.RunRef{},
		Agents: []protocol.AgentInfo{{Name: "builtin"}}, Isolation: []string{"landlock"}, OS: "linux", Arch: "amd64",
	}, &protocol.HelloReply{})
	if err != nil {
		return nil, fmt.Errorf("hello of %s: %w", name, err)
	}
	life, stop := context.WithCancel(ctx)
	b.stop = stop
	beat := func() error {
		return b.conn.Beat(protocol.Presence{V: protocol.Version, Version: "bench", State: "ready", Slots: slots, Free: slots})
	}
	if err := beat(); err != nil {
		return nil, err
	}
	go func() {
		for {
			select {
			case <-life.Done():
				return
			case <-time.After(protocol.BeatEvery):
				_ = beat() // a missed beat shows as a box that is gone
			}
		}
	}()
	return b, nil
}

func (b *box) close() {
	b.stop()
	b.conn.Close()
}

func (b *box) call(ctx context.Context, method string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return b.conn.Call(ctx, method, in, out)
}

// take waits for a run and accepts it. at is when the acceptance was known to
// be stored.
func (b *box) take(ctx context.Context) (run *protocol.Start, at time.Time, err error) {
	for {
		var claim protocol.ClaimReply
		ask := protocol.Claim{ID: "claim-" + strconv.FormatInt(b.claims.Add(1), 10), Free: 1, WaitMS: 10_000}
		if err := b.call(ctx, protocol.CallClaim, ask, &claim); err != nil {
			return nil, at, err
		}
		if run = claim.Run; run != nil {
			break
		}
	}
	var renewal protocol.Renewal
	if err := b.call(ctx, protocol.CallAccept, protocol.Accept{Run: run.Run, Attempt: run.Attempt}, &renewal); err != nil {
		return nil, at, err
	}
	if !renewal.OK {
		return nil, at, fmt.Errorf("run %s was not the box's to accept", run.Run)
	}
	return run, time.Now(), nil
}

// finish ends a run that has said nothing yet.
func (b *box) finish(ctx context.Context, run *protocol.Start) error {
	data, err := json.Marshal(protocol.Finished{State: protocol.Succeeded})
	if err != nil {
		return err
	}
	_, err = b.publish(ctx, run, []protocol.Event{{Seq: 1, Kind: protocol.EventAccepted}, {Seq: 2, Kind: protocol.EventFinished, Data: data}}, 0)
	return err
}

func (b *box) publish(ctx context.Context, run *protocol.Start, events []protocol.Event, after uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return b.conn.Publish(ctx, protocol.Envelope{Run: run.Run, Attempt: run.Attempt, Events: events}, after)
}

// committed is the last event of a run that the database holds.
func (b *box) committed(ctx context.Context, run *protocol.Start) (int64, error) {
	var renewal protocol.Renewal
	err := b.call(ctx, protocol.CallRenew, protocol.Renew{Run: run.Run, Attempt: run.Attempt}, &renewal)
	return renewal.CommittedSeq, err
}
