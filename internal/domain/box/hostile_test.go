package box

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// TestHostileBeat holds that a beat that cannot be stored as it is does not
// spoil the presence of its own box, nor of another box whose beat is stored
// with it.
func TestHostileBeat(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		f.run()
		evil, honest := f.join(), f.join()
		evil.beat(protocol.Presence{Version: "1\x00" + strings.Repeat("9", 5000), State: "ready", Runs: make([]protocol.RunRef, 1000),
			Unfit: "no\x00 \x1b[2Jroom\n" + strings.Repeat("é", 5000)})
		honest.beat(protocol.Presence{Version: "1.1.0", State: "ready"})
		for _, m := range []*machine{evil, honest} {
			patience.Until(t, "the box comes online", func() bool { return f.box(m.ID).Presence.Status == Online })
		}
		if r := read(f, byIdentity, evil.ID); r.Version != "1"+strings.Repeat("9", maxVersion-2) || len(r.Telemetry.V.Runs) != maxRuns {
			t.Errorf("what is kept of the hostile beat: %s, %d runs", r.Version, len(r.Telemetry.V.Runs))
		}
		if u := f.box(evil.ID).Presence.Unfit; u == nil || !strings.HasPrefix(*u, "no [2Jroom éé") || len(*u) > protocol.MaxUnfit {
			t.Errorf("what is kept of its reason: %v", u)
		}
	})
}

// TestHelloWithAForeignKey holds that a hello whose key the box's own nkey has
// not signed is refused: neither another box's signature nor one for another
// box or key will do. A caller that speaks as a box on the bus gets no secrets
// sealed to its own key.
func TestHelloWithAForeignKey(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		f.run()
		m, other := f.join(), f.join()
		thief, err := seal.NewRecipient()
		if err != nil {
			t.Fatal(err)
		}
		sign := func(by *machine, statement []byte) string {
			signature, err := by.pair.Sign(statement)
			if err != nil {
				t.Fatal(err)
			}
			return base64.StdEncoding.EncodeToString(signature)
		}
		honest := m.signed(protocol.Hello{Slots: 1})
		for name, h := range map[string]protocol.Hello{
			"without a key":          {V: protocol.Version, Slots: 1},
			"without a signature":    {V: protocol.Version, Slots: 1, Key: thief.Public()},
			"signed for another key": {V: protocol.Version, Slots: 1, Key: thief.Public(), Signature: honest.Signature},
			"signed by another box": {V: protocol.Version, Slots: 1, Key: thief.Public(),
				Signature: sign(other, protocol.KeyStatement(m.ID, thief.Public()))},
			"signed for another box": {V: protocol.Version, Slots: 1, Key: thief.Public(),
				Signature: sign(m, protocol.KeyStatement(other.ID, thief.Public()))},
			"of the version before": {V: 1, Slots: 1, Key: honest.Key, Signature: honest.Signature},
			"with a key as long as a day": {V: protocol.Version, Slots: 1, Key: strings.Repeat("A", 5000),
				Signature: sign(m, protocol.KeyStatement(m.ID, strings.Repeat("A", 5000)))},
		} {
			if err := m.conn.Call(t.Context(), protocol.CallHello, h, nil); !fault.IsKind(err, fault.Forbidden) &&
				!fault.IsKind(err, fault.Invalid) {
				t.Errorf("a hello %s: %v", name, err)
			}
			if key := read(f, sealKey, m.ID); key != "" {
				t.Fatalf("a hello %s left the key %s", name, key)
			}
		}
		f.hello(m, protocol.Hello{Slots: 1})
		if key := read(f, sealKey, m.ID); key != m.secret.Public() {
			t.Errorf("the key is %q", key)
		}
	})
}

// TestFickleBox holds that a box whose reports change each time does not fill
// the audit log.
func TestFickleBox(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		f.run()
		m := f.join()
		refused := 0
		for i := range 100 {
			h := m.signed(protocol.Hello{Slots: 1, Version: fmt.Sprint("1.0.", i)})
			if err := m.conn.Call(t.Context(), protocol.CallHello, h, nil); fault.IsKind(err, fault.RateLimited) {
				refused++
			} else if err != nil {
				t.Fatal(err)
			}
		}
		if n := read(f, countAudit, m.ID, "box.reported"); refused < 70 || n > 30 {
			t.Errorf("%d of 100 changes were refused, %d are on record", refused, n)
		}
		f.hello(m, protocol.Hello{Slots: 1, Version: read(f, byIdentity, m.ID).Version}) // a hello without a change is taken
		large := m.signed(protocol.Hello{Slots: 1, Version: strings.Repeat("9", 5000)})
		if err := m.conn.Call(t.Context(), protocol.CallHello, large, nil); !fault.IsKind(err, fault.Invalid) {
			t.Errorf("a version of 5,000 digits: %v", err)
		}
		large = m.signed(protocol.Hello{Slots: 1, Agents: []protocol.AgentInfo{{Name: strings.Repeat("a", 5000)}}})
		if err := m.conn.Call(t.Context(), protocol.CallHello, large, nil); !fault.IsKind(err, fault.Invalid) {
			t.Errorf("an agent with a name of 5,000 letters: %v", err)
		}
	})
}

// TestMovingOver holds that a box that enrolled when all boxes shared one
// account gets an account of its own with its next credentials, and keeps it
// from then on.
func TestMovingOver(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		f.run()
		_, public := keyPair(t)
		c := f.enrolled(public)
		f.write(func(tx *db.Tx) error { _, err := setAccount.Exec(tx, c.ID, nil); return err })
		if _, err := f.renew(context.Background(), c.ID, nil); !fault.IsKind(err, fault.Forbidden) {
			t.Errorf("a box without an account renews: %v", err)
		}
		reissue := func() string {
			f.want(200, "", "POST", "/v1/runners/creds/reissue", map[string]string{"public_key": public}, "Authorization",
				"Bearer "+*c.RunToken).into(t, &c)
			return *read(f, byIdentity, c.ID).NATSAccount
		}
		token := c.RunToken
		first := reissue()
		c.RunToken = token
		if again := reissue(); again != first {
			t.Errorf("another account, %s after %s", again, first)
		}
		var claims struct {
			NATS struct {
				IssuerAccount string `json:"issuer_account"`
			} `json:"nats"`
		}
		text, err := base64.RawURLEncoding.DecodeString(strings.Split(c.NATSJWT, ".")[1])
		if err == nil {
			err = json.Unmarshal(text, &claims)
		}
		if err != nil || claims.NATS.IssuerAccount != first {
			t.Errorf("the credential is for %q, %v", claims.NATS.IssuerAccount, err)
		}
	})
}

// TestRevokedByAnotherNode holds that a box that one node revokes is shut out
// of the bus of another.
func TestRevokedByAnotherNode(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		m := f.join()
		other := New(Needs{DB: f.DB, Hub: f.Hub, Logger: f.Logger, Runs: f.Runs, Bus: nowhere{f.bus}})
		f.write(func(tx *db.Tx) error {
			tx.Account = "acme"
			r, _, err := byIdentity.Maybe(tx, m.ID)
			if err == nil {
				_, err = other.revokeRow(tx, r)
			}
			return err
		})
		if err := f.settleAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		patience.Until(t, "the box is cut off", func() bool {
			select {
			case s := <-m.states:
				return !s.Connected
			default:
				return false
			}
		})
	})
}

// nowhere is the bus of another node, to which none of our boxes is connected.
type nowhere struct{ Bus }

func (nowhere) Shut(context.Context, string) error { return nil }

// TestManyKeys holds that a box gets a limited number of keys, as each leaves a
// row and an account behind.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		c := f.enrolled(publicKey(t))
		reissue := func(status int) {
			f.want(status, "", "POST", "/v1/runners/creds/reissue", map[string]string{"public_key": publicKey(t)}, "Authorization",
				"Bearer "+*c.RunToken)
		}
		for range keysADay {
			reissue(200)
		}
		reissue(429)
	})
}

// TestHostileCalls holds that every call of a box is answered, or refused with
// a fault that names the reason, and that no report of a box keeps another
// box's beat from being stored.
func TestHostileCalls(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		f.run()
		m, honest := f.join(), f.join()
		strange := []string{"", "\x00", "a\x00b", "\u202e\x1b[2J", "\xff\xfe", strings.Repeat("é", 150), strings.Repeat("9", 50_000)}
		for _, s := range strange {
			for _, h := range []protocol.Hello{
				{Slots: math.MaxInt, Version: s}, {Slots: 1, OS: s}, {Slots: -1, Arch: s}, {Slots: 1, Labels: map[string]string{"a": s}},
				{Slots: 1, Labels: map[string]string{s: "a"}},
				{Slots: 1, Agents: []protocol.AgentInfo{{Name: s, Version: s}}}, {Slots: 1, Isolation: []string{s}},
				{Slots: 1, Runs: []protocol.RunRef{{Run: s, Attempt: -1, Seq: -1}}},
			} {
				f.answered(m, protocol.CallHello, m.signed(h))
			}
			f.answered(m, protocol.CallHello, protocol.Hello{V: protocol.Version, Slots: 1, Key: s, Signature: s})
			f.answered(m, protocol.CallDone, protocol.Done{IDs: []string{s, s}})
			f.answered(m, protocol.CallBeat,
				protocol.Presence{State: s, Version: s, Slots: math.MinInt, Free: math.MaxInt, DiskFree: math.MinInt64,
					SkewMS: math.MaxInt64,
					Runs:   slices.Repeat([]protocol.RunRef{{Run: s, Attempt: math.MaxInt}}, 4), Unfit: s})
		}
		for _, method := range []string{protocol.CallHello, protocol.CallBeat, protocol.CallCommands, protocol.CallDone,
			protocol.CallCredential} {
			for _, body := range []any{nil, 0, "x", []int{}, map[string]any{"runs": 1}, map[string]any{"ids": make([]string, 10_000)},
				map[string]any{"v": 2, "slots": 1, "runs": make([]int, 100)}} {
				f.answered(m, method, body)
			}
		}
		f.answered(m, protocol.CallBeat, protocol.Presence{State: "ready",
			Runs: slices.Repeat([]protocol.RunRef{{Run: strange[len(strange)-1]}}, 4)})
		honest.beat(protocol.Presence{Version: "1.1.0", State: "ready"})
		for _, each := range []*machine{m, honest} {
			patience.Until(t, "the box comes online", func() bool { return f.box(each.ID).Presence.Status == Online })
		}
		if size := len(read(f, telemetryOf, m.ID)); size > 64<<10 {
			t.Errorf("%d bytes are kept of what a box says of itself", size)
		}
	})
}

var telemetryOf = db.Q[string](`SELECT telemetry FROM boxes WHERE id = $1`)

// answered makes a call and fails the test if the call fails with an internal
// error.
func (f *fixture) answered(m *machine, method string, in any) {
	f.t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		f.t.Fatal(err)
	}
	handlers := map[string]func(context.Context, string, []byte) (any, error){protocol.CallHello: f.Service.hello,
		protocol.CallBeat:     f.Service.beat,
		protocol.CallCommands: f.nextCommands, protocol.CallDone: f.commandsDone, protocol.CallCredential: f.renew}
	if _, err := handlers[method](f.t.Context(), m.ID, text); err != nil && fault.From(err).Kind == fault.Internal {
		f.t.Errorf("%s %.200q fails inside: %.300v", method, text, err)
	}
}
