package bus_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/bus/hostile"
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
			release := serveWorst(t, b, parse(cfg.Keys.AccountSeed))
			attacker, victim := newSeat(t, b, "X"), newSeat(t, b, "V")
			f := hostile.Field{
				X: "X", V: "V",
				Attack:         attacker.bound(t, b),
				Suffer:         victim.bound(t, b),
				Control:        unrestricted(t, b, parse(cfg.Keys.AccountSeed)),
				VictimSide:     unrestricted(t, b, victim.account),
				System:         unrestricted(t, b, parse(cfg.Keys.SystemSeed)),
				ControlAccount: public(parse(cfg.Keys.AccountSeed)),
				VictimAccount:  public(victim.account),
				Release:        release,
			}
			if unbound {
				f.Attack = attacker.unbound(t, b)
			}
			tried, err := hostile.Play(patience.Context(t), f)
			if err != nil {
				t.Fatal(err)
			}
			for _, a := range tried {
				if a.Succeeded {
					t.Errorf("succeeded: %s", a.Name)
				}
			}
			if len(tried) < 200 {
				t.Errorf("only %d attempts", len(tried))
			}
			t.Logf("%d attempts, of which the flood was: %s", len(tried), tried[len(tried)-3].Name)
		})
	}
}

// The game sees an attempt that succeeds: here both boxes share one account.
func TestHostileGameCanBeLost(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	release := serveWorst(t, b, parse(cfg.Keys.AccountSeed))
	control := parse(cfg.Keys.AccountSeed)
	inside := func(more ...nats.Option) (*nats.Conn, error) {
		return nats.Connect(b.URL(), append(more, login(control))...)
	}
	tried, err := hostile.Play(patience.Context(t), hostile.Field{
		X: "X", V: "V", Attack: inside, Suffer: inside, Control: unrestricted(t, b, control), VictimSide: unrestricted(t, b, control),
		System: unrestricted(t, b, parse(cfg.Keys.SystemSeed)), ControlAccount: public(control), VictimAccount: public(control),
		Release: release,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, a := range tried {
		if a.Succeeded {
			n++
		}
	}
	if n < 40 {
		t.Errorf("in one account %d of %d attempts succeeded: the game does not see what happens", n, len(tried))
	}
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

// serveWorst answers calls as the control plane does, but echoes everything the
// asker sent. Calls of the slow method wait for release.
func serveWorst(t *testing.T, b server, control nkeys.KeyPair) (release func()) {
	t.Helper()
	held := make(chan func(), 100)
	nc := unrestricted(t, b, control)
	for _, method := range []string{hostile.EchoMethod, hostile.SlowMethod, "claim", "append"} {
		sub, err := nc.QueueSubscribe(protocol.CallSubject("*", method), "cp", func(m *nats.Msg) {
			answer := func() { _ = m.RespondMsg(&nats.Msg{Data: m.Data, Header: m.Header}) }
			if method == hostile.SlowMethod {
				held <- answer
				return
			}
			answer()
		})
		if err == nil {
			err = sub.SetPendingLimits(-1, -1)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return func() { patience.Receive(t, "a call that waits", held)() }
}

// seat is a box's account whose private key, unlike a real one's, is known.
type seat struct {
	id      string
	account nkeys.KeyPair
}

func newSeat(t *testing.T, b server, id string) seat {
	t.Helper()
	s := seat{id, must(nkeys.CreateAccount())}
	b.registry.set(public(s.account), id)
	return s
}

// bound connects with a credential like any box's.
func (s seat) bound(t *testing.T, b server) func(...nats.Option) (*nats.Conn, error) {
	t.Helper()
	user := must(nkeys.CreateUser())
	token, err := b.Issue(s.id, public(s.account), public(user), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return func(more ...nats.Option) (*nats.Conn, error) {
		return nats.Connect(b.URL(), append(more, nats.UserJWT(func() (string, error) { return token, nil }, user.Sign))...)
	}
}

// unbound connects as a user with all permissions of the account.
func (s seat) unbound(t *testing.T, b server) func(...nats.Option) (*nats.Conn, error) {
	t.Helper()
	return func(more ...nats.Option) (*nats.Conn, error) {
		return nats.Connect(b.URL(), append(more, login(s.account))...)
	}
}

func login(account nkeys.KeyPair) nats.Option {
	user := must(nkeys.CreateUser())
	token := must(jwt.NewUserClaims(public(user)).Encode(account))
	return nats.UserJWT(func() (string, error) { return token, nil }, user.Sign)
}

func unrestricted(t *testing.T, b server, account nkeys.KeyPair) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(b.URL(), login(account), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}
