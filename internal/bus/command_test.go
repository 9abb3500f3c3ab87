package bus_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"yardmaster/internal/bus/boxconn"
	"yardmaster/internal/protocol"
)

// readCommands runs c.Commands and passes each command on; what take returns
// decides whether it is acknowledged. The returned function ends it.
func readCommands(t *testing.T, c *boxconn.Conn, take func(protocol.Command) error) (got <-chan protocol.Command, end func()) {
	ch, done := make(chan protocol.Command, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		done <- c.Commands(ctx, func(m protocol.Command) error {
			err := take(m)
			ch <- m
			return err
		})
	}()
	end = func() {
		cancel()
		if err := receive(t, "end of Commands", done); !errors.Is(err, context.Canceled) {
			t.Errorf("Commands ended with %v", err)
		}
	}
	return ch, end
}

func TestCommandsAreDurableAndAcknowledgedAfterPersisting(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	x := enrol(t, b, "bx")
	enrol(t, b, "other")
	send := func(boxID, id, kind string) {
		t.Helper()
		if err := b.Send(testContext(t), boxID, protocol.Command{ID: id, Kind: kind, Run: "r"}); err != nil {
			t.Fatal(err)
		}
	}
	// Sent while the box is away, before a restart of the server.
	send("other", "c0", protocol.CommandHalt)
	send("bx", "c1", protocol.CommandMessage)
	send("bx", "c1", protocol.CommandMessage)
	stop(t, b)
	b = start(t, cfg)
	send("bx", "c2", protocol.CommandUpdate)

	c := x.connect(t, b)
	failures := 1
	got, end := readCommands(t, c, func(protocol.Command) error {
		if failures--; failures >= 0 {
			return errors.New("the disk is full")
		}
		return nil
	})
	for i, want := range []string{"c1", "c1", "c2"} { // the first c1 was not taken, and nothing overtakes it
		if m := receive(t, "command", got); m.ID != want || m.V != protocol.Version {
			t.Fatalf("command %d is %+v, want %s", i, m, want)
		}
	}
	send("bx", "c3", protocol.CommandDrain)
	if m := receive(t, "command", got); m.ID != "c3" || m.Kind != protocol.CommandDrain {
		t.Errorf("got %+v", m)
	}
	end()

	// What was acknowledged does not come again to a new connection, which
	// gets the next command only.
	send("bx", "c4", protocol.CommandResume)
	got, end = readCommands(t, x.connect(t, b), func(protocol.Command) error { return nil })
	defer end()
	if m := receive(t, "command", got); m.ID != "c4" && m.ID != "c3" {
		t.Errorf("got %+v", m)
	}
}

func TestCommandsSurviveARestartInMidPull(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	cfg.Listen = hostPort(t, b.URL())
	x := enrol(t, b, "bx")
	c := x.connect(t, b)
	x.await(t, "connected", connected)
	got, end := readCommands(t, c, func(protocol.Command) error { return nil })
	defer end()
	if err := b.Send(testContext(t), "bx", protocol.Command{ID: "c1", Kind: protocol.CommandHalt}); err != nil {
		t.Fatal(err)
	}
	receive(t, "command", got)
	stop(t, b)
	x.await(t, "disconnected", func(s boxconn.State) bool { return !s.Connected })
	b = start(t, cfg)
	if err := b.Send(testContext(t), "bx", protocol.Command{ID: "c2", Kind: protocol.CommandHalt}); err != nil {
		t.Fatal(err)
	}
	for m := receive(t, "command after the restart", got); m.ID != "c2"; m = receive(t, "command after the restart", got) {
		if m.ID != "c1" { // may come again if its acknowledgement was cut off
			t.Fatalf("got %+v", m)
		}
	}
}

func TestImmediateCopies(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	c := enrol(t, b, "bx").connect(t, b)
	type heard struct {
		verb string
		c    protocol.Command
	}
	got := make(chan heard, 10)
	if err := c.Control(func(verb string, data []byte) {
		h := heard{verb: verb}
		if err := json.Unmarshal(data, &h.c); err != nil {
			t.Errorf("%s: %v", verb, err)
		}
		got <- h
	}); err != nil {
		t.Fatal(err)
	}
	// A call and its answer prove that the subscription has arrived.
	if err := b.Handle(protocol.CallHello, func(context.Context, string, []byte) (any, error) { return struct{}{}, nil }); err != nil {
		t.Fatal(err)
	}
	if err := c.Call(testContext(t), protocol.CallHello, protocol.Hello{}, nil); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{protocol.CommandUpdate, protocol.CommandHalt, protocol.CommandRevoke} {
		if err := b.Send(testContext(t), "bx", protocol.Command{ID: kind, Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	b.Nudge("bx", "claim", map[string]string{"id": "n"})
	for _, want := range []heard{
		{"halt", protocol.Command{V: protocol.Version, ID: protocol.CommandHalt, Kind: protocol.CommandHalt}},
		{"revoke", protocol.Command{V: protocol.Version, ID: protocol.CommandRevoke, Kind: protocol.CommandRevoke}},
		{"claim", protocol.Command{ID: "n"}},
	} {
		if h := receive(t, want.verb, got); h != want {
			t.Errorf("heard %+v, want %+v", h, want)
		}
	}
}

func TestRemoveBoxForgetsItsCommands(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	x := enrol(t, b, "bx")
	ctx := testContext(t)
	if err := b.Send(ctx, "bx", protocol.Command{ID: "old", Kind: protocol.CommandHalt}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.RemoveBox(ctx, "bx"); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.AddBox(ctx, "bx"); err != nil {
		t.Fatal(err)
	}
	if err := b.Send(ctx, "bx", protocol.Command{ID: "new", Kind: protocol.CommandHalt}); err != nil {
		t.Fatal(err)
	}
	got, end := readCommands(t, x.connect(t, b), func(protocol.Command) error { return nil })
	defer end()
	if m := receive(t, "command", got); m.ID != "new" {
		t.Errorf("got %+v", m)
	}
}

func TestPresence(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	cfg.PresenceTTL = time.Second
	b := start(t, cfg)
	c := enrol(t, b, "bx").connect(t, b)
	type seen struct {
		box string
		p   *protocol.Presence
	}
	got, done := make(chan seen, 100), make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		done <- b.WatchPresence(ctx, func(id string, p *protocol.Presence) { got <- seen{id, p} })
	}()
	if err := c.Beat(protocol.Presence{State: "ready", Slots: 2}); err != nil {
		t.Fatal(err)
	}
	if s := receive(t, "beat", got); s.box != "bx" || s.p == nil || s.p.State != "ready" || s.p.Slots != 2 || s.p.V != protocol.Version {
		t.Errorf("saw %+v", s)
	}
	if s := receive(t, "expiry", got); s.box != "bx" || s.p != nil {
		t.Errorf("saw %+v", s)
	}
	cancel()
	if err := receive(t, "end of the watch", done); err != nil {
		t.Error(err)
	}
}
