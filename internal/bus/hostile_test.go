package bus_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// A box attacks a box of another account: once with its issued credential, and
// once with a credential without permissions, as if those could be bypassed.
func TestHostileBox(t *testing.T) {
	t.Parallel()
	for name, unbound := range map[string]bool{"as issued": false, "without permissions": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := newConfig(t)
			b := start(t, cfg)
			arena{cfg.Keys, b, b, b}.repel(t, unbound)
		})
	}
}

// The game sees an attempt that succeeds: here both boxes share one account.
func TestHostileGameCanBeLost(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	arena{cfg.Keys, b, b, b}.lose(t)
}

// A box that sends as much as its connection carries is refused beyond its share;
// the calls of other boxes, on the connection that serves all, are answered meanwhile.
func TestFlood(t *testing.T) {
	t.Parallel()
	const share, size = 1 << 20, 250 << 10
	c := newConfig(t)
	c.Share = share
	var second atomic.Int64
	c.Now = func() time.Time { return time.Unix(second.Load(), 0) }
	b := start(t, c)
	echo(t, b)
	var taken atomic.Int64
	err := b.Handle(protocol.CallAppend, func(_ context.Context, _ string, data []byte) (any, error) {
		taken.Add(1)
		return struct{}{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	honest := enrol(t, b, "honest").connect(t, b)
	x := newSeat(t, b, "X")
	nc, err := x.bound(t, b)(nats.CustomInboxPrefix("_INBOX.X"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	answers := make(chan bool, 10_000) // whether a call was taken
	if _, err := nc.Subscribe("_INBOX.X.>", func(m *nats.Msg) {
		answers <- m.Header.Get("Nats-Service-Error-Code") != "429"
	}); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, size)
	// The box sends n calls, of which so many fit into its share.
	flood := func(n, fit int) {
		t.Helper()
		before := taken.Load()
		for range n {
			if err := nc.PublishRequest(protocol.CallSubject("X", protocol.CallAppend), "_INBOX.X.r", body); err != nil {
				t.Fatal(err)
			}
		}
		got := 0
		for range n {
			if patience.Receive(t, "an answer to the flood", answers) {
				got++
			}
		}
		if got != fit || taken.Load()-before != int64(fit) {
			t.Errorf("of %d calls %d were taken and %d answered so; the share is %d", n, taken.Load()-before, got, fit)
		}
	}
	const weighs = size + 8<<10
	flood(500, 4*share/weighs)
	second.Add(1)
	flood(500, (4*share%weighs+share)/weighs)

	// Meanwhile an honest box is answered: the flood ends when it has been, not before.
	done := make(chan struct{})
	var flooding sync.WaitGroup
	var sent atomic.Int64
	flooding.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if sent.Load()%200 == 0 {
				second.Add(1) // so that it is refused for ever, and never put out
			}
			if err := nc.PublishRequest(protocol.CallSubject("X", protocol.CallAppend), "_INBOX.X.r", body); err != nil {
				t.Error(err)
				return
			}
			sent.Add(1)
			select {
			case <-answers:
			default:
			}
		}
	})
	for i := range int64(20) {
		patience.Until(t, "the flood goes on", func() bool { return sent.Load() > 20*i || t.Failed() })
		works(t, honest, "honest")
	}
	close(done)
	flooding.Wait()
}

// A box that goes on calling after many refusals is disconnected: the calls of
// others and the server's own Ping are answered. Until Config.PutOut is over the box
// cannot connect.
func TestBoxThatAsksOnAndOn(t *testing.T) {
	t.Parallel()
	const fit, refusals = 4 << 20 / (8 << 10), 5000 // calls that its share holds, and refusals that are put up with
	cfg := newConfig(t)
	cfg.Share, cfg.PutOut = 1<<20, time.Hour
	cfg.Now = func() time.Time { return time.Unix(0, 0) }
	b := start(t, cfg)
	echo(t, b)
	honest := enrol(t, b, "honest").connect(t, b)
	x := newSeat(t, b, "X")
	cut := make(chan error, 1)
	nc, err := x.bound(t, b)(nats.CustomInboxPrefix("_INBOX.X"), nats.NoReconnect(),
		nats.ClosedHandler(func(nc *nats.Conn) { cut <- nc.LastError() }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	ask := func(n int) {
		for range n {
			if nc.PublishRequest(protocol.CallSubject("X", protocol.CallPing), "_INBOX.X.r", nil) != nil {
				return // it is out
			}
		}
	}
	ask(refusals - 1) // and one more below; so many are borne in any case
	_, err = nc.RequestWithContext(patience.Context(t), protocol.CallSubject("X", protocol.CallPing), nil)
	if err != nil || nc.IsClosed() {
		t.Errorf("after %d calls the box is answered: %v; out: %v", refusals, err, nc.IsClosed())
	}
	ask(fit + 1)
	_ = nc.FlushWithContext(patience.Context(t)) // it fails if the box is out already
	err = patience.Receive(t, "the end of the connection", cut)
	t.Logf("put out: %v", err)
	for range 3 {
		if nc, err := x.bound(t, b)(); err == nil {
			nc.Close()
			t.Error("the box came back at once")
		}
	}
	works(t, honest, "honest")
	if err := b.Ping(patience.Context(t)); err != nil {
		t.Error(err)
	}
}

// A box that was put out comes back when its time is over.
func TestBoxThatWasPutOutComesBack(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	cfg.Share, cfg.PutOut = 1<<20, time.Millisecond
	cfg.Now = func() time.Time { return time.Unix(0, 0) }
	b := start(t, cfg)
	x := newSeat(t, b, "X")
	cut := make(chan struct{})
	nc, err := x.bound(t, b)(nats.NoReconnect(), nats.ClosedHandler(func(*nats.Conn) { close(cut) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	for range 10_000 {
		if nc.PublishRequest(protocol.CallSubject("X", protocol.CallPing), "_INBOX.X.r", nil) != nil {
			break
		}
	}
	patience.Ended(t, "the end of the connection", cut)
	patience.Until(t, "the box is back", func() bool {
		nc, err := x.bound(t, b)()
		if err == nil {
			nc.Close()
		}
		return err == nil
	})
}

// No stream is within reach of a box's account or of the control plane's.
func TestNoJetStream(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	for name, account := range map[string]nkeys.KeyPair{"box": newSeat(t, b, "X").account, "control plane": parse(cfg.Keys.AccountSeed)} {
		nc := unrestricted(t, b, account)
		for _, subject := range []string{"$JS.API.INFO", "$JS.API.STREAM.CREATE.SPY", "$JS.API.STREAM.NAMES"} {
			if m, err := nc.RequestWithContext(patience.Context(t), subject, []byte("{}")); err != nats.ErrNoResponders {
				t.Errorf("%s, %s: %v %v", name, subject, m, err)
			}
		}
	}
}
