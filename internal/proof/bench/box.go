package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nkeys"

	"yardmaster/internal/box"
	"yardmaster/internal/box/conn"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// machine is a simulated box: a real connection with a real identity, without a
// machine behind it.
type machine struct {
	conn   *conn.Conn
	secret seal.Recipient
	claims atomic.Int64
	again  *atomic.Int64 // counts calls that were said again, as boxes do; nil: a call that fails is an error
	stop   context.CancelFunc
}

// callTime bounds one call of a box.
const callTime = 30 * time.Second

// join enrolls a box, which then says hello and beats.
func (w *world) join(ctx context.Context, name string, slots int) (*machine, error) {
	who, err := w.enroll(ctx, name, slots)
	if err != nil {
		return nil, err
	}
	return attach(ctx, who, slots)
}

func (w *world) enroll(ctx context.Context, name string, slots int) (who box.Identity, err error) {
	var minted struct{ Token string }
	if err := w.api.Call(ctx, http.MethodPost, "/v1/runners/enrollments", map[string]any{"name": name}, &minted); err != nil {
		return who, err
	}
	return box.Enroll(ctx, w.url, minted.Token, box.Info{Name: name, Version: "bench", Slots: slots})
}

// attach connects a box, which then says hello and beats.
func attach(ctx context.Context, who box.Identity, slots int) (*machine, error) {
	return attachFor(ctx, who, slots, 0)
}

// attachFor is attach with another bound of an attempt to connect.
func attachFor(ctx context.Context, who box.Identity, slots int, attempt time.Duration) (b *machine, err error) {
	b = &machine{}
	credential := func() (string, []byte) { return who.NATSJWT.Value, []byte(who.Seed) }
	b.conn, err = conn.Dial(who.NATSURL, who.Box, credential, conn.Options{Attempt: attempt})
	if err != nil {
		return nil, err
	}
	if err := b.conn.Wait(ctx); err != nil {
		return nil, err
	}
	if b.secret, err = seal.NewRecipient(); err != nil {
		return nil, err
	}
	pair, err := nkeys.FromSeed([]byte(who.Seed))
	if err != nil {
		return nil, err
	}
	signature, err := pair.Sign(protocol.KeyStatement(who.Box, b.secret.Public()))
	if err != nil {
		return nil, err
	}
	err = b.call(ctx, protocol.CallHello, protocol.Hello{
		Key: b.secret.Public(), Signature: base64.StdEncoding.EncodeToString(signature),
		V: protocol.Version, Version: "bench", Slots: slots, Runs: []protocol.RunRef{},
		Agents: []protocol.AgentInfo{{Name: "builtin"}}, Isolation: []string{"landlock"},
		Holds: map[string][]string{"landlock": protocol.Isolated}, OS: "linux", Arch: "amd64",
	}, &protocol.HelloReply{})
	if err != nil {
		return nil, fmt.Errorf("hello: %w", err)
	}
	life, stop := context.WithCancel(ctx)
	b.stop = stop
	beat := func() error {
		return b.call(ctx, protocol.CallBeat,
			protocol.Presence{V: protocol.Version, Version: "bench", State: "ready", Slots: slots, Free: slots}, nil)
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
				_ = beat() // a missed beat shows as an offline box
			}
		}
	}()
	return b, nil
}

func (b *machine) close() {
	b.stop()
	b.conn.Close()
}

func (b *machine) call(ctx context.Context, method string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	return b.conn.Call(ctx, method, in, out)
}

// insist says a call again until it is answered, if the box does.
func (b *machine) insist(ctx context.Context, method string, in, out any) error {
	for {
		err := b.call(ctx, method, in, out)
		if err == nil || b.again == nil || ctx.Err() != nil {
			return err
		}
		b.again.Add(1)
		if b.conn.Wait(ctx) != nil {
			return err
		}
	}
}

// take waits for a run and accepts it. at is when the box knew that the acceptance
// was stored.
func (b *machine) take(ctx context.Context) (run *protocol.Start, at time.Time, err error) {
	for {
		var claim protocol.ClaimReply
		ask := protocol.Claim{ID: "claim-" + strconv.FormatInt(b.claims.Add(1), 10), Free: 1, WaitMS: 10_000}
		if err := b.insist(ctx, protocol.CallClaim, ask, &claim); err != nil {
			return nil, at, err
		}
		if run = claim.Run; run == nil {
			continue
		}
		var tokens protocol.Tokens
		text, err := b.secret.Open(protocol.TokensPurpose(run.Run), claim.Sealed)
		if err == nil {
			err = json.Unmarshal(text, &tokens)
		}
		if err != nil {
			return nil, at, fmt.Errorf("tokens of run %s: %w", run.Run, err)
		}
		run.ModelToken, run.GitToken = tokens.Model, tokens.Git
		break
	}
	var renewal protocol.Renewal
	if err := b.insist(ctx, protocol.CallAccept, protocol.Accept{Run: run.Run, Attempt: run.Attempt}, &renewal); err != nil {
		return nil, at, err
	}
	if !renewal.OK {
		return nil, at, fmt.Errorf("run %s was not the box's to accept", run.Run)
	}
	return run, time.Now(), nil
}

// finish ends a run that has sent no event yet.
func (b *machine) finish(ctx context.Context, run *protocol.Start) error {
	data, err := json.Marshal(protocol.Finished{State: protocol.Succeeded})
	if err != nil {
		return err
	}
	for err = errors.New("not sent"); err != nil; {
		_, err = b.append(ctx, run, []protocol.Event{{Seq: 1, Kind: protocol.EventAccepted},
			{Seq: 2, Kind: protocol.EventFinished, Data: data}})
		if err != nil && (b.again == nil || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			b.again.Add(1)
		}
	}
	return nil
}

// append sends events, and answers the last one that the database holds.
func (b *machine) append(ctx context.Context, run *protocol.Start, events []protocol.Event) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	reply, err := b.conn.Append(ctx, protocol.Envelope{Run: run.Run, Attempt: run.Attempt, Events: events})
	return reply.Seq, err
}
