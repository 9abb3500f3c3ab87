package bus_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// rawConnect opens a plain NATS connection, as a box that follows no protocol
// would, and answers a channel with the server's complaints.
func rawConnect(t *testing.T, url, token string, seed []byte) (*nats.Conn, <-chan error, error) {
	t.Helper()
	complaints := make(chan error, 100)
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(url,
		nats.UserJWT(func() (string, error) { return token, nil }, pair.Sign),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { complaints <- err }))
	if err == nil {
		t.Cleanup(nc.Close)
	}
	return nc, complaints, err
}

func TestBoxCannotNameAnother(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	mine := enrol(t, b, "mine")
	enrol(t, b, "other")
	token, seed := mine.creds()
	nc, complaints, err := rawConnect(t, b.URL(), token, seed)
	if err != nil {
		t.Fatal(err)
	}

	publish := func(subject string) error { return nc.Publish(subject, []byte("{}")) }
	subscribe := func(subject string) error { _, err := nc.SubscribeSync(subject); return err }
	for _, c := range []struct {
		do      func(string) error
		subject string
		allowed bool
	}{
		{publish, protocol.CallSubject("mine", protocol.CallClaim), true},
		{subscribe, "_INBOX.mine.>", true},
		{subscribe, protocol.ControlSubject("mine", ">"), true},

		{publish, protocol.CallSubject("other", protocol.CallClaim), false},
		{publish, protocol.ControlSubject("mine", "prove"), false},
		{publish, protocol.ControlSubject("other", "prove"), false},
		{publish, "evt.mine.r.1", false},
		{publish, "cmd.mine.run.halt", false},
		{publish, "$KV.presence.mine", false},
		{publish, "$JS.API.INFO", false},
		{publish, "$SYS.REQ.USER.INFO", false},
		{publish, "void.js.API.INFO", false},
		{publish, "_INBOX.mine.x", false},
		{publish, "_INBOX.other.x", false},
		{publish, "_R_.x", false},
		{subscribe, "_INBOX.other.>", false},
		{subscribe, "_INBOX.>", false},
		{subscribe, protocol.ControlSubject("*", ">"), false},
		{subscribe, protocol.ControlSubject("other", ">"), false},
		{subscribe, protocol.CallSubject("*", "claim"), false},
		{subscribe, protocol.CallSubject("mine", ">"), false},
		{subscribe, "_R_.>", false},
		{subscribe, "$SYS.>", false},
		{subscribe, ">", false},
	} {
		if err := c.do(c.subject); err != nil {
			t.Fatal(err)
		}
		if err := nc.FlushWithContext(patience.Context(t)); err != nil {
			t.Fatal(err)
		}
		if !c.allowed {
			err := patience.Receive(t, "complaint about "+c.subject, complaints)
			if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), `"`+c.subject+`"`) {
				t.Errorf("%s: complaint is %v", c.subject, err)
			}
			continue
		}
		select {
		case err := <-complaints:
			t.Errorf("%s is refused: %v", c.subject, err)
		default:
		}
	}
}

// A holder of the signing key can pose as any box whose account it knows, and no
// more: it can mint neither other permissions nor users of other accounts.
func TestLeakedSigningKeyMintsOnlyBoxes(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	signing := parse(cfg.Keys.SigningSeed)
	x := enrol(t, b, "bx")
	for name, c := range map[string]struct {
		account string
		allow   jwt.StringList
	}{
		"permissions of its own":      {x.account, jwt.StringList{">"}},
		"the control plane's account": {public(parse(cfg.Keys.AccountSeed)), nil},
		"the system account":          {public(parse(cfg.Keys.SystemSeed)), nil},
		"an account that is nobody's": {must(b.NewAccount()), nil},
	} {
		claims := jwt.NewUserClaims(x.public)
		claims.Name, claims.IssuerAccount = "bx", c.account
		if c.allow == nil {
			claims.UserPermissionLimits = jwt.UserPermissionLimits{}
		}
		claims.Pub.Allow = c.allow
		token := must(claims.Encode(signing))
		if _, _, err := rawConnect(t, b.URL(), token, x.seed); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("a JWT with %s: %v", name, err)
		}
	}
}

// A box whose JWT names another box stays in its own account, where it cannot
// speak for the other.
func TestNameOfAnother(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	echo(t, b)
	x := enrol(t, b, "bx")
	enrol(t, b, "other")
	claims := jwt.NewUserClaims(x.public)
	claims.Name, claims.IssuerAccount, claims.UserPermissionLimits = "other", x.account, jwt.UserPermissionLimits{}
	token := must(claims.Encode(parse(cfg.Keys.SigningSeed)))
	nc, _, err := rawConnect(t, b.URL(), token, x.seed)
	if err != nil {
		t.Fatal(err)
	}
	inbox, err := nc.SubscribeSync("_INBOX.other.x")
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest(protocol.CallSubject("other", protocol.CallHello), "_INBOX.other.x", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	m, err := inbox.NextMsgWithContext(patience.Context(t))
	if err == nil && m.Header.Get("Status") != "503" {
		t.Errorf("answered %q", m.Data)
	}
}

func parse(seed string) nkeys.KeyPair { return must(nkeys.FromSeed([]byte(seed))) }

func public(k nkeys.KeyPair) string { return must(k.PublicKey()) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestIssueRefusesNamesThatWidenAPermission(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	x := enrol(t, b, "bx")
	for _, id := range []string{"", "*", ">", "a.b", "a b", "{{name()}}", "é"} {
		if _, err := b.Issue(id, x.account, x.public, time.Hour); err == nil {
			t.Errorf("issued for box id %q", id)
		}
	}
	if _, err := b.Issue("bx", x.account, "not a key", time.Hour); err == nil {
		t.Error("issued for a bad key")
	}
	if _, err := b.Issue("bx", "not an account", x.public, time.Hour); err == nil {
		t.Error("issued for a bad account")
	}
}

func TestShutIsLiveAndLasts(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	echo(t, b)
	bad, good := enrol(t, b, "bad"), enrol(t, b, "good")
	bad.connect(t, b)
	bad.await(t, "connected", connected)
	goodConn := good.connect(t, b)
	good.await(t, "connected", connected)

	if err := b.Shut(patience.Context(t), bad.account); err != nil {
		t.Fatal(err)
	}
	bad.await(t, "disconnected", func(s conn.State) bool { return !s.Connected })
	bad.await(t, "refused", refused)
	works(t, goodConn, "good")
	select {
	case s := <-good.states:
		t.Errorf("the other box was disturbed: %+v", s)
	default:
	}
	if err := b.Shut(patience.Context(t), bad.account); err != nil {
		t.Errorf("once more: %v", err)
	}
	// The server has not met this account yet.
	late := enrol(t, b, "late")
	if err := b.Shut(patience.Context(t), late.account); err != nil {
		t.Fatal(err)
	}
	token, seed := late.creds()
	if _, _, err := rawConnect(t, b.URL(), token, seed); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("an account that was shut before its first connection: %v", err)
	}

	// After a restart Config.Owner decides.
	cfg.registry.set(bad.account, "")
	stop(t, b)
	b = start(t, cfg)
	token, seed = bad.creds()
	if _, _, err := rawConnect(t, b.URL(), token, seed); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a shut account after a restart: %v", err)
	}
}

// A box whose account was shut connects at once with another account.
func TestAnotherAccount(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	echo(t, b)
	x := enrol(t, b, "bx")
	c := x.connect(t, b)
	x.await(t, "connected", connected)
	if err := b.Shut(patience.Context(t), x.account); err != nil {
		t.Fatal(err)
	}
	x.await(t, "refused", refused)
	x.account = must(b.NewAccount())
	b.registry.set(x.account, "bx")
	x.issue(t, b, time.Hour)
	if err := c.Reconnect(b.URL()); err != nil {
		t.Fatal(err)
	}
	x.await(t, "connected again", connected)
	works(t, c, "bx")
}

func TestExpiryAndRenewal(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	x := enrol(t, b, "bx")
	// A credential that ends soon, but not before the box is connected: on a slow machine it
	// may end first, and the next is good for longer.
	var c *conn.Conn
	for ttl := 2 * time.Second; ; ttl *= 2 {
		x.issue(t, b, ttl)
		if c == nil {
			c = x.dial(t, b.URL())
		}
		var in bool
		x.await(t, "connected or refused", func(s conn.State) bool {
			in = s.Connected
			return in || refused(s)
		})
		if in {
			break
		}
	}

	x.await(t, "disconnected", func(s conn.State) bool { return !s.Connected })
	if err := c.Call(patience.Context(t), protocol.CallHello, protocol.Hello{}, nil); !errors.Is(err, conn.ErrOffline) {
		t.Errorf("a call without a connection: %v", err)
	}
	x.await(t, "refused", refused)
	x.issue(t, b, time.Hour)
	x.await(t, "connected by itself", connected)

	// Renewal ahead of time.
	x.issue(t, b, 2*time.Hour)
	if err := c.Reconnect(b.URL()); err != nil {
		t.Fatal(err)
	}
	x.await(t, "disconnected for renewal", func(s conn.State) bool { return !s.Connected })
	x.await(t, "connected with the new credential", connected)
}

// A nudge sent just before Shut reaches the box: it tells the box to ask why.
func TestLastWord(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	for i := range 50 {
		x := enrol(t, b, fmt.Sprint("bx", i))
		c := x.connect(t, b)
		verbs := make(chan string, 1)
		if err := c.Nudges(func(verb string) { verbs <- verb }); err != nil {
			t.Fatal(err)
		}
		echoed := c.Call(patience.Context(t), protocol.CallPing, struct{}{}, nil) // the server knows the subscription
		if echoed != nil {
			t.Fatal(echoed)
		}
		b.Nudge(x.id, protocol.NudgeProve)
		if err := b.Shut(patience.Context(t), x.account); err != nil {
			t.Fatal(err)
		}
		patience.Receive(t, "nudge", verbs)
		c.Close()
	}
}
