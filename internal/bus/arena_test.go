package bus_test

import (
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/bus"
	"yardmaster/internal/bus/hostile"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// arena is where the hostile game is played: the nodes to which the control plane, the attacker and
// its victim are connected. They may be one.
type arena struct {
	keys                    bus.Keys
	control, attack, suffer server
}

// field is the arena as the game has it, but for how the attacker and the victim connect.
func (a arena) field(t *testing.T, victim nkeys.KeyPair) hostile.Field {
	t.Helper()
	control := parse(a.keys.AccountSeed)
	return hostile.Field{
		X: "X", V: "V",
		Release:        serveWorst(t, a.control, control),
		Control:        unrestricted(t, a.control, control),
		VictimSide:     unrestricted(t, a.suffer, victim),
		System:         unrestricted(t, a.control, parse(a.keys.SystemSeed)),
		ControlAccount: public(control),
		VictimAccount:  public(victim),
	}
}

// repel plays the game between boxes of two accounts: the attacker gets nowhere, with its credential or,
// unbound, with all permissions of its account.
func (a arena) repel(t *testing.T, unbound bool) {
	t.Helper()
	attacker, victim := newSeat(t, a.attack, "X"), newSeat(t, a.suffer, "V")
	f := a.field(t, victim.account)
	f.Calm = a.attack == a.suffer && a.attack != a.control
	f.Suffer = victim.bound(t, a.suffer)
	if f.Attack = attacker.bound(t, a.attack); unbound {
		f.Attack = attacker.unbound(t, a.attack)
	}
	known(t, "X", f.Attack)
	known(t, "V", f.Suffer)
	tried, err := hostile.Play(patience.Context(t), f)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range tried {
		if one.Succeeded {
			t.Errorf("succeeded: %s", one.Name)
		}
	}
	if len(tried) < 200 {
		t.Errorf("only %d attempts", len(tried))
	}
	t.Logf("%d attempts, the third of the last: %s", len(tried), tried[len(tried)-3].Name)
}

// known waits until the node of a box knows that calls are answered elsewhere: what nobody is known to answer
// is dropped.
func known(t *testing.T, id string, dial func(...nats.Option) (*nats.Conn, error)) {
	t.Helper()
	nc, err := dial(nats.CustomInboxPrefix("_INBOX." + id))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	patience.Until(t, "a call of "+id+" is answered", func() bool {
		_, err := nc.Request(protocol.CallSubject(id, worst[len(worst)-1]), nil, time.Second)
		return err == nil
	})
}

// lose plays the game with both boxes in the control plane's own account: the game sees what succeeds.
func (a arena) lose(t *testing.T) {
	t.Helper()
	control := parse(a.keys.AccountSeed)
	inside := func(b server) func(...nats.Option) (*nats.Conn, error) {
		return func(more ...nats.Option) (*nats.Conn, error) {
			return nats.Connect(b.URL(), append(more, login(control))...)
		}
	}
	f := a.field(t, control)
	f.Attack, f.Suffer = inside(a.attack), inside(a.suffer)
	known(t, "X", f.Attack)
	known(t, "V", f.Suffer)
	tried, err := hostile.Play(patience.Context(t), f)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, one := range tried {
		if one.Succeeded {
			n++
		}
	}
	if n < 40 {
		t.Errorf("in one account %d of %d attempts succeeded: the game does not see what happens", n, len(tried))
	}
	t.Logf("%d of %d attempts succeeded", n, len(tried))
}

// worst are the methods that serveWorst answers.
var worst = []string{hostile.EchoMethod, hostile.SlowMethod, "claim", "append"}

// serveWorst answers calls as the control plane does, but echoes everything the
// asker sent. Calls of the slow method wait for release.
func serveWorst(t *testing.T, b server, control nkeys.KeyPair) (release func()) {
	t.Helper()
	held := make(chan func(), 100)
	nc := unrestricted(t, b, control)
	for _, method := range worst {
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
	b.admit(t, id, public(s.account))
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
