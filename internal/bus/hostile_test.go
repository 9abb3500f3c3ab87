package bus_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/bus/hostile"
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
			serveWorst(t, b, parse(cfg.Keys.AccountSeed))
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
			}
			if unbound {
				f.Attack = attacker.unbound(t, b)
			}
			tried, err := hostile.Play(testContext(t), f)
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
			t.Logf("%d attempts", len(tried))
		})
	}
}

// The game sees an attempt that succeeds: here both boxes share one account.
func TestHostileGameCanBeLost(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	serveWorst(t, b, parse(cfg.Keys.AccountSeed))
	control := parse(cfg.Keys.AccountSeed)
	inside := func(more ...nats.Option) (*nats.Conn, error) {
		return nats.Connect(b.URL(), append(more, login(control))...)
	}
	tried, err := hostile.Play(testContext(t), hostile.Field{
		X: "X", V: "V", Attack: inside, Suffer: inside, Control: unrestricted(t, b, control), VictimSide: unrestricted(t, b, control),
		System: unrestricted(t, b, parse(cfg.Keys.SystemSeed)), ControlAccount: public(control), VictimAccount: public(control),
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
// the calls of other boxes, on the connection that serves all, are still answered.
func TestFlood(t *testing.T) {
	t.Parallel()
	const share = 1 << 20 // a slow machine exceeds it too
	c := newConfig(t)
	c.Share = share
	b := start(t, c)
	echo(t, b)
	var taken atomic.Int64
	err := b.Handle(protocol.CallAppend, func(_ context.Context, _ string, data []byte) (any, error) {
		taken.Add(int64(len(data)))
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
	var refused atomic.Int64
	if _, err := nc.Subscribe("_INBOX.X.>", func(m *nats.Msg) {
		if m.Header.Get("Nats-Service-Error-Code") == "429" {
			refused.Add(1)
		}
	}); err != nil {
		t.Fatal(err)
	}
	var waits []time.Duration // of the honest box
	began := time.Now()
	body := make([]byte, 250<<10)
	for i := 0; time.Since(began) < 5*time.Second || refused.Load() == 0; i++ {
		if err := nc.PublishRequest(protocol.CallSubject("X", protocol.CallAppend), "_INBOX.X.r", body); err != nil && refused.Load() == 0 {
			t.Fatal(err)
		} else if err != nil {
			break // it was refused so often that it was put out
		}
		if i%20 == 0 {
			asked := time.Now()
			works(t, honest, "honest")
			waits = append(waits, time.Since(asked))
		}
		if time.Since(began) > patience {
			t.Fatal("nothing was refused")
		}
	}
	// One call may meet a moment in which the machine does something else.
	slices.Sort(waits)
	if n := len(waits); n < 10 || waits[n*3/4] > time.Second || waits[n-1] > patience/2 {
		t.Errorf("an honest box waited %s", waits)
	}
	if most := int64(share * (4 + time.Since(began).Seconds() + 1)); taken.Load() > most {
		t.Errorf("%d MB were taken of one box, its share was %d", taken.Load()>>20, most>>20)
	}
	t.Logf("%d MB taken, %d calls refused", taken.Load()>>20, refused.Load())
}

// A box that goes on calling after many refusals is disconnected: the calls of
// others and the server's own Ping are answered. After Config.PutOut the box may
// connect again.
func TestBoxThatAsksOnAndOn(t *testing.T) { // alone: it takes all that the machine has
	cfg := newConfig(t)
	cfg.PutOut = 10 * time.Second
	b := start(t, cfg)
	echo(t, b)
	honest := enrol(t, b, "honest").connect(t, b)
	x := newSeat(t, b, "X")
	cut := make(chan error, 1)
	nc, err := x.bound(t, b)(nats.NoReconnect(), nats.ClosedHandler(func(nc *nats.Conn) { cut <- nc.LastError() }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	began := time.Now()
	for time.Since(began) < 2*patience {
		if err := nc.PublishRequest(protocol.CallSubject("X", protocol.CallPing), "_INBOX.X.r", nil); err != nil {
			break
		}
	}
	err = receive(t, "the end of the connection", cut)
	t.Logf("put out after %s: %v", time.Since(began), err)
	if nc, err := x.bound(t, b)(); err == nil {
		nc.Close()
		t.Error("the box came back at once")
	}
	works(t, honest, "honest")
	if err := b.Ping(testContext(t)); err != nil {
		t.Error(err)
	}
	for {
		nc, err := x.bound(t, b)()
		if err == nil {
			nc.Close()
			break
		}
		if time.Since(began) > 4*patience {
			t.Fatalf("the box does not come back: %v", err)
		}
	}
}

// No stream is within reach of a box's account or of the control plane's.
func TestNoJetStream(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	for name, account := range map[string]nkeys.KeyPair{"box": newSeat(t, b, "X").account, "control plane": parse(cfg.Keys.AccountSeed)} {
		nc := unrestricted(t, b, account)
		for _, subject := range []string{"$JS.API.INFO", "$JS.API.STREAM.CREATE.SPY", "$JS.API.STREAM.NAMES"} {
			if m, err := nc.RequestWithContext(testContext(t), subject, []byte("{}")); err != nats.ErrNoResponders {
				t.Errorf("%s, %s: %v %v", name, subject, m, err)
			}
		}
	}
}

// serveWorst answers calls as the control plane does, but echoes everything the
// asker sent.
func serveWorst(t *testing.T, b server, control nkeys.KeyPair) {
	t.Helper()
	nc := unrestricted(t, b, control)
	for _, method := range []string{hostile.EchoMethod, hostile.SlowMethod, "claim", "append"} {
		sub, err := nc.QueueSubscribe(protocol.CallSubject("*", method), "cp", func(m *nats.Msg) {
			answer := func() { _ = m.RespondMsg(&nats.Msg{Data: m.Data, Header: m.Header}) }
			if method == hostile.SlowMethod {
				time.AfterFunc(hostile.SlowTime, answer)
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
