package bus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/bus"
	"yardmaster/internal/proof/estate"
	"yardmaster/internal/proof/loopback"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// external are the settings of a bus that uses a server, or several with commas between.
func external(e *estate.Estate, cfg config, node, servers string) config {
	cfg.External = &bus.External{Node: node, Servers: servers, Operator: e.Operator(), Creds: e.Creds(),
		Owners: cfg.registry.owners, May: cfg.registry.may, Sweep: time.Hour}
	return cfg
}

// everywhere runs a bus at each of three servers.
func everywhere(t *testing.T, e *estate.Estate, cfg config) (out []server) {
	t.Helper()
	for i := range 3 {
		out = append(out, start(t, external(e, cfg, fmt.Sprint("node", i), e.At(i))))
	}
	return out
}

const often = time.Second // the resolvers of an estate compare

// Boxes, calls, nudges and revocations of the servers of somebody else are as with the embedded ones, whichever
// server a box and a node are at.
func TestExternal(t *testing.T) {
	t.Parallel()
	e := estate.New(t, 3, often, true)
	cfg := newConfig(t)
	all := everywhere(t, e, cfg)
	for _, b := range all {
		echo(t, b)
		if err := b.Ping(patience.Context(t)); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range all {
		id := fmt.Sprint("crane", i)
		x := enrol(t, all[0], id)
		c := x.connect(t, b)
		x.await(t, "connected", connected)
		works(t, c, id)
		verbs := make(chan string, 1000)
		if err := c.Nudges(func(verb string) { verbs <- verb }); err != nil {
			t.Fatal(err)
		}
		for j, from := range all {
			verb := fmt.Sprint("look", j)
			patience.Until(t, "a nudge", func() bool {
				from.Nudge(id, verb)
				select {
				case got := <-verbs:
					return got == verb
				default:
					return false
				}
			})
		}
		cfg.registry.set(x.account, "")
		if err := all[(i+1)%3].Shut(patience.Context(t), x.account); err != nil {
			t.Fatal(err)
		}
		x.await(t, "refused", refused)
	}
}

// Boxes that are there before a bus uses the servers get their accounts by the comparison; what was revoked while no
// bus ran is emptied by it, and accounts of others are left alone.
func TestExternalIsCompared(t *testing.T) {
	t.Parallel()
	e := estate.New(t, 2, often, false)
	cfg := newConfig(t)
	own := start(t, cfg)
	stays := enrol(t, own, "stays") // of the embedded server
	first := start(t, external(e, cfg, "node0", e.At(0)))
	gone := enrol(t, first, "gone")
	gone.connect(t, first)
	stays.connect(t, first)
	other := e.Foreign()
	stop(t, first)
	cfg.registry.set(gone.account, "")
	second := start(t, external(e, cfg, "node0", e.At(1)))
	gone.await(t, "refused", refused)
	echo(t, second)
	works(t, stays.connect(t, second), "stays")
	if err := other.FlushWithContext(patience.Context(t)); err != nil || !other.IsConnected() {
		t.Errorf("an account of others: %v", err)
	}
}

// A server that was away when a box was revoked may let it in; it is answered nothing, and thrown out.
func TestExternalServerThatWasAway(t *testing.T) {
	t.Parallel()
	e := estate.New(t, 3, often, true)
	cfg := newConfig(t)
	b := start(t, external(e, cfg, "node0", e.At(0)))
	echo(t, b)
	x := enrol(t, b, "crane")
	c := x.dial(t, e.At(2))
	if err := c.Wait(patience.Context(t)); err != nil {
		t.Fatal(err)
	}
	patience.Until(t, "a call is answered", func() bool { return c.Call(t.Context(), protocol.CallHello, struct{}{}, nil) == nil })
	e.Stop(2)
	cfg.registry.set(x.account, "")
	if err := b.Shut(patience.Context(t), x.account); err != nil {
		t.Fatal(err)
	}
	e.Run(2)
	x.await(t, "refused", func(s conn.State) bool {
		if s.Connected {
			var got said
			if err := c.Call(patience.Context(t), protocol.CallHello, struct{}{}, &got); err == nil {
				t.Error("a box that was revoked is answered")
			}
		}
		return refused(s)
	})
}

func seed(k nkeys.KeyPair, err error) string { return string(must(must(k, err).Seed())) }

// Keys that are not what they should be are said so.
func TestExternalRefusals(t *testing.T) {
	t.Parallel()
	e := estate.New(t, 1, often, true)
	good := external(e, newConfig(t), "node0", e.At(0))
	for name, c := range map[string]struct {
		change func(*bus.External)
		says   string
	}{
		"an account's key":      {func(x *bus.External) { x.Operator = seed(nkeys.CreateAccount()) }, "begins with SO"},
		"no key":                {func(x *bus.External) { x.Operator = "" }, "the operator's key"},
		"no credentials":        {func(x *bus.External) { x.Creds = "nothing" }, "credentials of the system account"},
		"somebody else's key":   {func(x *bus.External) { x.Operator = seed(nkeys.CreateOperator()) }, "Authorization"},
		"another's system":      {func(x *bus.External) { x.Creds = estate.New(t, 1, often, true).Creds() }, "Authorization"},
		"nobody at the address": {func(x *bus.External) { x.Servers = "nats://" + loopback.Address() }, "system account of nats-servers"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			own := *cfg.External
			c.change(&own)
			cfg.External = &own
			b, err := bus.Start(patience.Context(t), cfg.Config)
			if err == nil {
				stop(t, server{b, nil})
			}
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
		})
	}
	if n, err := bus.CheckExternal(patience.Context(t), *good.External); n != 1 || err != nil {
		t.Errorf("%d servers, %v", n, err)
	}
}

// Nothing that a hostile box tries gets through the servers of somebody else.
func TestHostileBoxAtExternalServers(t *testing.T) {
	t.Parallel()
	for name, unbound := range map[string]bool{"as issued": false, "without permissions": true} {
		t.Run(name, func(t *testing.T) {
			e := estate.New(t, 3, time.Minute, false)
			cfg := newConfig(t)
			all := everywhere(t, e, cfg)
			keys := cfg.Keys
			keys.SystemSeed = e.System()
			arena{keys, all[0], all[1], all[2]}.repel(t, unbound)
		})
	}
}
