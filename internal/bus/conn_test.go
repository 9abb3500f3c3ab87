package bus_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

func TestDialBeforeTheControlPlaneIsUp(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	cfg.Listen = loopback.Address()
	b := start(t, cfg)
	x := enrol(t, b, "bx")
	address := b.URL()
	stop(t, b)

	c := x.dial(t, address)
	x.await(t, "a failed attempt", func(s conn.State) bool { return s.Err != nil })
	if _, err := c.Append(patience.Context(t), envelope("r", 1, 1, 1)); !errors.Is(err, conn.ErrOffline) {
		t.Errorf("an event without a connection: %v", err)
	}
	b = start(t, cfg)
	if b.URL() != address {
		t.Errorf("the address changed from %s to %s", address, b.URL())
	}
	x.await(t, "connected", connected)
	echo(t, b)
	works(t, c, "bx")
}

func TestNudge(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	verbs := map[string]chan string{}
	for _, id := range []string{"bx", "other"} {
		c := enrol(t, b, id).connect(t, b)
		verbs[id] = make(chan string, 10)
		if err := c.Nudges(func(verb string) { verbs[id] <- verb }); err != nil {
			t.Fatal(err)
		}
		echo(t, b)
		works(t, c, id) // the server has the subscription before the answer
	}
	b.Nudge("bx", protocol.NudgeCommands)
	b.Nudge("other", protocol.NudgeProve)
	if verb := patience.Receive(t, "nudge", verbs["bx"]); verb != protocol.NudgeCommands {
		t.Errorf("bx hears %q", verb)
	}
	if verb := patience.Receive(t, "nudge", verbs["other"]); verb != protocol.NudgeProve {
		t.Errorf("the other hears %q", verb)
	}
	b.Nudge("*", protocol.NudgeProve) // * is no box id
	b.Nudge("bx", "end")
	if verb := patience.Receive(t, "nudge", verbs["bx"]); verb != "end" {
		t.Errorf("a nudge to everybody arrived: %q", verb)
	}
}

// The largest answer and the largest question are carried.
func TestSizes(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	c := enrol(t, b, "bx").connect(t, b)
	err := b.Handle(protocol.CallAppend, func(_ context.Context, _ string, data []byte) (any, error) {
		return strings.Repeat("x", 1_000_000), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	e := envelope("r", 1, 1, 1)
	e.Events[0].Data = []byte(`"` + strings.Repeat("y", protocol.MaxMessage-200) + `"`)
	var got string
	if err := c.Call(patience.Context(t), protocol.CallAppend, e, &got); err != nil || len(got) != 1_000_000 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	e.Events[0].Data = []byte(`"` + strings.Repeat("y", protocol.MaxMessage) + `"`)
	if _, err := c.Append(patience.Context(t), e); !errors.Is(err, conn.ErrTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
}
