package bus_test

import (
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"yardmaster/internal/bus"
	"yardmaster/internal/bus/boxconn"
	"yardmaster/internal/protocol"
)

const patience = 20 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func newConfig(t testing.TB) bus.Config {
	t.Helper()
	keys, err := bus.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	return bus.Config{Dir: t.TempDir(), Keys: keys, Logger: slog.New(slog.DiscardHandler)}
}

func start(t testing.TB, cfg bus.Config) *bus.Bus {
	t.Helper()
	b, err := bus.Start(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, b) })
	return b
}

func stop(t testing.TB, b *bus.Bus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
}

// box is an enrolled machine.
type box struct {
	id, public string
	seed       []byte
	states     chan boxconn.State

	mu  sync.Mutex
	jwt string
}

func enrol(t testing.TB, b *bus.Bus, id string) *box {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	x := &box{id: id, states: make(chan boxconn.State, 1000)}
	if x.public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	if x.seed, err = pair.Seed(); err != nil {
		t.Fatal(err)
	}
	if err := b.AddBox(testContext(t), id); err != nil {
		t.Fatal(err)
	}
	x.issue(t, b, time.Hour)
	return x
}

func (x *box) issue(t testing.TB, b *bus.Bus, ttl time.Duration) {
	t.Helper()
	token, err := b.Issue(x.id, x.public, ttl)
	if err != nil {
		t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.jwt = token
}

func (x *box) creds() (string, []byte) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.jwt, append([]byte(nil), x.seed...)
}

func (x *box) dial(t testing.TB, url string) *boxconn.Conn {
	t.Helper()
	c, err := boxconn.Dial(url, x.id, x.creds, boxconn.Options{OnState: func(s boxconn.State) { x.states <- s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// connect dials and waits for the connection.
func (x *box) connect(t testing.TB, b *bus.Bus) *boxconn.Conn {
	t.Helper()
	c := x.dial(t, b.URL())
	if err := c.Wait(testContext(t)); err != nil {
		t.Fatalf("box %s does not connect: %v", x.id, err)
	}
	return c
}

// await reads states until one satisfies ok.
func (x *box) await(t testing.TB, what string, ok func(boxconn.State) bool) {
	t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case s := <-x.states:
			if ok(s) {
				return
			}
		case <-deadline:
			t.Fatalf("box %s: no state that is %s", x.id, what)
		}
	}
}

func connected(s boxconn.State) bool { return s.Connected }
func refused(s boxconn.State) bool   { return boxconn.IsRefused(s.Err) }

func receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s", what)
		panic("unreachable")
	}
}

// envelope of the events first to last of an attempt.
func envelope(run string, attempt int, first, last int64) protocol.Envelope {
	e := protocol.Envelope{V: protocol.Version, Run: run, Attempt: attempt}
	for seq := first; seq <= last; seq++ {
		e.Events = append(e.Events, protocol.Event{Seq: seq, Kind: protocol.EventUpdate, Data: []byte(`{"text":"some words that an agent said"}`)})
	}
	return e
}

func TestStartReportsATakenPort(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	cfg := newConfig(t)
	cfg.Listen = taken.Addr().String()
	began := time.Now()
	b, err := bus.Start(testContext(t), cfg)
	if err == nil {
		stop(t, b)
		t.Fatal("started on a taken port")
	}
	if !strings.Contains(err.Error(), cfg.Listen+" is taken") || !strings.Contains(err.Error(), "nats-listen") {
		t.Errorf("said %q", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %s to notice", took)
	}
}

func TestStartRefusesForeignKeys(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	cfg.Keys.SigningSeed = cfg.Keys.OperatorSeed
	if b, err := bus.Start(testContext(t), cfg); err == nil {
		stop(t, b)
		t.Fatal("an operator seed passed as a signing key")
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	if err := b.Ping(testContext(t)); err != nil {
		t.Fatal(err)
	}
	stop(t, b)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := b.Ping(ctx); err == nil {
		t.Error("a closed bus answers")
	}
}
