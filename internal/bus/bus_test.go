package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/bus"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// registry knows which box an account belongs to, as a database does.
type registry struct {
	mu    sync.Mutex
	boxes map[string]string // account -> box
}

func (r *registry) owner(_ context.Context, account string) (string, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	box, ok := r.boxes[account]
	return box, ok, nil
}

func (r *registry) set(account, box string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.boxes[account] = box; box == "" {
		delete(r.boxes, account)
	}
}

func newConfig(t testing.TB) config {
	t.Helper()
	keys, err := bus.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	r := &registry{boxes: map[string]string{}}
	return config{bus.Config{Keys: keys, Owner: r.owner, Logger: slog.New(slog.DiscardHandler)}, r}
}

// config is the configuration of a bus, and the registry of its boxes.
type config struct {
	bus.Config
	registry *registry
}

// server is a running bus.
type server struct {
	*bus.Bus
	registry *registry
}

func start(t testing.TB, cfg config) server {
	t.Helper()
	b, err := bus.Start(patience.Context(t), cfg.Config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, server{b, nil}) })
	return server{b, cfg.registry}
}

func stop(t testing.TB, b server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience.Of(t)) // the test may be over
	defer cancel()
	if err := b.Close(ctx); err != nil {
		t.Error(err)
	}
}

// box is an enrolled machine.
type box struct {
	id, account, public string
	seed                []byte
	states              chan conn.State

	mu  sync.Mutex
	jwt string
}

func enrol(t testing.TB, b server, id string) *box {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	x := &box{id: id, states: make(chan conn.State, 1000)}
	if x.public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	if x.seed, err = pair.Seed(); err != nil {
		t.Fatal(err)
	}
	if x.account, err = b.NewAccount(); err != nil {
		t.Fatal(err)
	}
	b.registry.set(x.account, id)
	b.admit(t, id, x.account)
	x.issue(t, b, time.Hour)
	return x
}

func (b server) admit(t testing.TB, id, account string) {
	t.Helper()
	if err := b.Admit(patience.Context(t), id, account); err != nil {
		t.Fatal(err)
	}
}

func (x *box) issue(t testing.TB, b server, ttl time.Duration) {
	t.Helper()
	token, err := b.Issue(x.id, x.account, x.public, ttl)
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

func (x *box) dial(t testing.TB, url string) *conn.Conn {
	t.Helper()
	c, err := conn.Dial(url, x.id, x.creds, conn.Options{OnState: func(s conn.State) { x.states <- s }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// connect dials and waits for the connection.
func (x *box) connect(t testing.TB, b server) *conn.Conn {
	t.Helper()
	c := x.dial(t, b.URL())
	if err := c.Wait(patience.Context(t)); err != nil {
		t.Fatalf("box %s does not connect: %v", x.id, err)
	}
	return c
}

// await reads states until one satisfies ok.
func (x *box) await(t testing.TB, what string, ok func(conn.State) bool) {
	t.Helper()
	over := patience.Over(t)
	for {
		select {
		case s := <-x.states:
			if ok(s) {
				return
			}
		case <-over:
			t.Fatalf("box %s: no state that is %s", x.id, what)
		}
	}
}

func connected(s conn.State) bool { return s.Connected }
func refused(s conn.State) bool   { return conn.IsRefused(s.Err) }

// envelope holds the events first to last of an attempt.
func envelope(run string, attempt int, first, last int64) protocol.Envelope {
	e := protocol.Envelope{V: protocol.Version, Run: run, Attempt: attempt}
	for seq := first; seq <= last; seq++ {
		e.Events = append(e.Events, protocol.Event{
			Seq: seq, Kind: protocol.EventUpdate, Data: []byte(`{"text":"some words that an agent said"}`),
		})
	}
	return e
}

// echo handles a method that answers the box's id.
func echo(t testing.TB, b server) {
	t.Helper()
	err := b.Handle(protocol.CallHello, func(_ context.Context, boxID string, _ []byte) (any, error) { return said{boxID}, nil })
	if err != nil {
		t.Fatal(err)
	}
}

type said struct{ Box string }

// works makes a call that echo answers.
func works(t testing.TB, c *conn.Conn, box string) {
	t.Helper()
	var got said
	if err := c.Call(patience.Context(t), protocol.CallHello, struct{}{}, &got); err != nil || got.Box != box {
		t.Errorf("a call of %s is answered %+v, %v", box, got, err)
	}
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
	b, err := bus.Start(patience.Context(t), cfg.Config)
	if err == nil {
		stop(t, server{b, nil})
		t.Fatal("started on a taken port")
	}
	if !strings.Contains(err.Error(), cfg.Listen+" is taken") || !strings.Contains(err.Error(), "nats-listen") {
		t.Errorf("said %q", err)
	}
}

func TestStartRefusesForeignKeys(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	cfg.Keys.SigningSeed = cfg.Keys.OperatorSeed
	if b, err := bus.Start(patience.Context(t), cfg.Config); err == nil {
		stop(t, server{b, nil})
		t.Fatal("an operator seed passed as a signing key")
	}
}

func TestPing(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	if err := b.Ping(patience.Context(t)); err != nil {
		t.Fatal(err)
	}
	stop(t, b)
	if err := b.Ping(patience.Context(t)); !errors.Is(err, nats.ErrConnectionClosed) {
		t.Errorf("a closed bus answers: %v", err)
	}
}
