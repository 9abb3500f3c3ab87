package bus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/bus/boxconn"
	"yardmaster/internal/protocol"
)

// rawConnect opens a plain NATS connection, as a box that keeps to no protocol
// would, and passes on what the server complains of.
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
	mine, other := enrol(t, b, "mine"), enrol(t, b, "other")
	_ = other
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
		{publish, protocol.EventSubject("mine", "r", 1), true},
		{publish, protocol.CallSubject("mine", protocol.CallClaim), true},
		{publish, "$KV.presence.mine", true},
		{publish, "$JS.API.CONSUMER.MSG.NEXT.CMD.mine", true},
		{publish, "$JS.API.DIRECT.GET.EVT.evt.mine.r.1", true},
		{subscribe, "_INBOX.mine.>", true},
		{subscribe, protocol.ControlSubject("mine", ">"), true},

		{publish, protocol.EventSubject("other", "r", 1), false},
		{publish, protocol.CallSubject("other", protocol.CallClaim), false},
		{publish, protocol.CommandSubject("mine", protocol.CommandHalt), false},
		{publish, protocol.ControlSubject("other", "halt"), false},
		{publish, "$KV.presence.other", false},
		{publish, "$JS.API.CONSUMER.MSG.NEXT.CMD.other", false},
		{publish, "$JS.API.CONSUMER.MSG.NEXT.EVT.ingest", false},
		{publish, "$JS.ACK.CMD.other.1.1.1.1.0", false},
		{publish, "$JS.API.DIRECT.GET.EVT.evt.other.r.1", false},
		{publish, "$JS.API.DIRECT.GET.EVT", false},
		{publish, "$JS.API.STREAM.INFO.EVT", false},
		{publish, "$JS.API.STREAM.MSG.GET.EVT", false},
		{publish, "$JS.API.CONSUMER.CREATE.EVT.x", false},
		{publish, "_INBOX.other.x", false},
		{subscribe, "_INBOX.other.>", false},
		{subscribe, "_INBOX.>", false},
		{subscribe, protocol.ControlSubject("*", ">"), false},
		{subscribe, protocol.ControlSubject("other", ">"), false},
		{subscribe, protocol.CallSubject("*", "claim"), false},
		{subscribe, "evt.>", false},
		{subscribe, "cmd.mine.>", false},
		{subscribe, "$KV.presence.>", false},
		{subscribe, ">", false},
	} {
		if err := c.do(c.subject); err != nil {
			t.Fatal(err)
		}
		if err := nc.FlushWithContext(testContext(t)); err != nil {
			t.Fatal(err)
		}
		if !c.allowed {
			err := receive(t, "complaint about "+c.subject, complaints)
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

func TestLeakedSigningKeyMintsOnlyBoxes(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	signing, err := nkeys.FromSeed([]byte(cfg.Keys.SigningSeed))
	if err != nil {
		t.Fatal(err)
	}
	account, err := nkeys.FromSeed([]byte(cfg.Keys.AccountSeed))
	if err != nil {
		t.Fatal(err)
	}
	accountID, err := account.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	x := enrol(t, b, "bx")
	claims := jwt.NewUserClaims(x.public)
	claims.Name = "bx"
	claims.IssuerAccount = accountID
	claims.Pub.Allow = jwt.StringList{">"}
	token, err := claims.Encode(signing)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := rawConnect(t, b.URL(), token, x.seed); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a JWT with permissions of its own: %v", err)
	}
}

func TestIssueRefusesNamesThatWidenAPermission(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	x := enrol(t, b, "bx")
	for _, id := range []string{"", "*", ">", "a.b", "a b", "{{name()}}", "é"} {
		if _, err := b.Issue(id, x.public, time.Hour); err == nil {
			t.Errorf("issued for box id %q", id)
		}
	}
	if _, err := b.Issue("bx", "not a key", time.Hour); err == nil {
		t.Error("issued for a bad key")
	}
}

func TestRevokeIsLiveAndLasts(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t)
	b := start(t, cfg)
	bad, good := enrol(t, b, "bad"), enrol(t, b, "good")
	bad.connect(t, b)
	bad.await(t, "connected", connected)
	goodConn := good.connect(t, b)
	good.await(t, "connected", connected)

	at := time.Now()
	if err := b.Revoke(testContext(t), bad.public, at); err != nil {
		t.Fatal(err)
	}
	bad.await(t, "disconnected", func(s boxconn.State) bool { return !s.Connected })
	bad.await(t, "refused", refused)
	if _, err := goodConn.Publish(testContext(t), envelope("r", 1, 1, 1), 0); err != nil {
		t.Errorf("the other box: %v", err)
	}
	select {
	case s := <-good.states:
		t.Errorf("the other box was disturbed: %+v", s)
	default:
	}

	// After a restart with what the caller has stored, still revoked; its old
	// JWT is not the one that a new enrolment gets.
	old := bad.jwt
	stop(t, b)
	cfg.Revoked = map[string]time.Time{bad.public: at}
	b = start(t, cfg)
	if _, _, err := rawConnect(t, b.URL(), old, bad.seed); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("revoked JWT after a restart: %v", err)
	}
}

func TestReissueAfterRevocation(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	x := enrol(t, b, "bx")
	c := x.connect(t, b)
	x.await(t, "connected", connected)
	if err := b.Revoke(testContext(t), x.public, time.Now()); err != nil {
		t.Fatal(err)
	}
	x.await(t, "refused", refused)
	x.issue(t, b, time.Hour) // in the same second, most likely
	if err := c.Reconnect(b.URL()); err != nil {
		t.Fatal(err)
	}
	x.await(t, "connected again", connected)
	// It may have come back by itself just before Reconnect.
	if err := send(testContext(t), c, "r", 3, func(int64) {}); err != nil {
		t.Error(err)
	}
}

func TestExpiryAndRenewal(t *testing.T) {
	t.Parallel()
	b := start(t, newConfig(t))
	x := enrol(t, b, "bx")
	x.issue(t, b, 2*time.Second)
	c := x.connect(t, b)
	x.await(t, "connected", connected)

	x.await(t, "disconnected", func(s boxconn.State) bool { return !s.Connected })
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Call(ctx, protocol.CallHello, protocol.Hello{}, nil); !errors.Is(err, boxconn.ErrOffline) {
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
	x.await(t, "disconnected for renewal", func(s boxconn.State) bool { return !s.Connected })
	x.await(t, "connected with the new credential", connected)
}
