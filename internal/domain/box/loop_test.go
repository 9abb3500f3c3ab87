package box

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"
	"pgregory.net/rapid"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/fault"
	_ "yardmaster/internal/proof/chance" // seeds rapid
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// machine is the far side: an enrolled box with its connection.
type machine struct {
	Credentials
	t      *testing.T
	public string
	pair   nkeys.KeyPair
	secret seal.Recipient
	conn   *conn.Conn
	states chan conn.State
	verbs  chan string // verbs that arrived on the control subject
}

// join enrolls a machine and connects it.
func (f *fixture) join() *machine {
	f.t.Helper()
	seed, public := keyPair(f.t)
	secret, err := seal.NewRecipient()
	if err != nil {
		f.t.Fatal(err)
	}
	pair, err := nkeys.FromSeed(seed)
	if err != nil {
		f.t.Fatal(err)
	}
	m := &machine{Credentials: f.enrolled(public), t: f.t, public: public, pair: pair, secret: secret, states: make(chan conn.State, 100),
		verbs: make(chan string, 100)}
	conn, err := conn.Dial(m.NATSURL, m.ID, func() (string, []byte) { return m.NATSJWT, slices.Clone(seed) },
		conn.Options{OnState: func(s conn.State) { m.states <- s }})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(conn.Close)
	m.conn = conn
	ctx := patience.Context(f.t)
	if err := conn.Wait(ctx); err != nil {
		f.t.Fatal(err)
	}
	if err := conn.Nudges(func(verb string) { m.verbs <- verb }); err != nil {
		f.t.Fatal(err)
	}
	return m
}

// run serves and loops until the test ends.
func (f *fixture) run() {
	f.t.Helper()
	if err := f.Serve(); err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Loop(ctx) }()
	f.t.Cleanup(func() {
		cancel()
		if err := patience.Receive(f.t, "the end of the loop", done); err != nil {
			f.t.Error(err)
		}
	})
}

// signed completes a hello.
func (m *machine) signed(h protocol.Hello) protocol.Hello {
	m.t.Helper()
	h.V, h.Key = protocol.Version, m.secret.Public()
	signature, err := m.pair.Sign(protocol.KeyStatement(m.ID, h.Key))
	if err != nil {
		m.t.Fatal(err)
	}
	h.Signature = base64.StdEncoding.EncodeToString(signature)
	return h
}

func (m *machine) beat(p protocol.Presence) (out protocol.BeatReply) {
	m.t.Helper()
	ctx := patience.Context(m.t)
	if err := m.conn.Call(ctx, protocol.CallBeat, p, &out); err != nil {
		m.t.Fatal(err)
	}
	return out
}

func (f *fixture) hello(m *machine, h protocol.Hello) (out protocol.HelloReply) {
	f.t.Helper()
	ctx := patience.Context(f.t)
	h = m.signed(h)
	if err := m.conn.Call(ctx, protocol.CallHello, h, &out); err != nil {
		f.t.Fatal(err)
	}
	return out
}

func TestLifeOfABox(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		f.run()
		m := f.join()
		reply := f.hello(m, protocol.Hello{Version: "1.1.0", Slots: 4, OS: "linux", Arch: "amd64", Isolation: []string{"landlock", "none"},
			Holds:  map[string][]string{"landlock": {"files", "network"}, "vault": {"files"}},
			Agents: []protocol.AgentInfo{{Name: "codex", Version: "0.1"}}, Runs: []protocol.RunRef{{Run: "r", Attempt: 1, Seq: 7}}})
		if reply.Draining || len(reply.Runs) != 1 || reply.Runs[0].FromSeq != 8 || reply.ServerMS == 0 {
			t.Errorf("hello is answered %+v", reply)
		}
		b := f.box(m.ID)
		if b.Slots != 4 || !slices.Equal(b.Capabilities, []Agent{{Name: "codex", Version: "0.1"}}) ||
			!slices.Equal(b.Isolation, []string{"landlock", "none"}) ||
			!maps.EqualFunc(b.Holds, Holds{"landlock": {"files", "network"}, "none": {}}, slices.Equal[[]string]) ||
			b.Presence.Version != "1.1.0" {
			t.Errorf("after hello: %+v", b)
		}

		say := func(p protocol.Presence) { t.Helper(); m.beat(p) }
		say(protocol.Presence{Version: "1.1.0", State: "ready", Slots: 4, Free: 3, Runs: []protocol.RunRef{{Run: "r", Attempt: 1}},
			DiskFree: 5})
		patience.Until(t, "the box comes online", func() bool { return f.box(m.ID).Presence.Status == Online })
		if p := f.box(m.ID).Presence; p.Active != 0 || p.Telemetry == nil || p.Telemetry.DiskFree != 5 || p.LastBeat == nil {
			t.Errorf("presence %+v", p)
		}
		if n := read(f, countAudit, m.ID, "box.online"); n != 1 {
			t.Errorf("%d audit rows for coming online", n)
		}
		say(protocol.Presence{Version: "1.1.0", State: "unfit", Slots: 4, Free: 4, Unfit: "The sandbox does not start."})
		patience.Until(t, "the box is unfit", func() bool { return f.box(m.ID).Presence.Unfit != nil })
		say(protocol.Presence{Version: "1.1.0", State: "ready", Slots: 4, Free: 4})
		patience.Until(t, "the box is fit", func() bool { return f.box(m.ID).Presence.Unfit == nil })
		unfitFor := func(want string) {
			t.Helper()
			patience.Until(t, "it is stored for which repositories the box is unfit", func() bool { return read(f, unfitForIs, m.ID) == want })
		}
		say(protocol.Presence{Version: "1.1.0", State: "ready", Slots: 4, Free: 4,
			UnfitFor: map[string]string{"acme/web": "Its cache\nis damaged.", "acme/\x1b": "no", "acme/none": ""}})
		unfitFor(`{"acme/web":"Its cache is damaged."}`)
		say(protocol.Presence{Version: "1.1.0", State: "ready", Slots: 4, Free: 4})
		unfitFor("")

		var cred protocol.CredentialReply
		if err := m.conn.Call(t.Context(), protocol.CallCredential, struct{}{}, &cred); err != nil || cred.JWT == "" ||
			cred.ExpiresMS < 86_000_000 {
			t.Errorf("cred.renew is answered %+v, %v", cred, err)
		}

		f.want(200, "", "POST", "/v1/runners/"+m.ID+"/drain", nil)
		if verb := patience.Receive(t, "nudge", m.verbs); verb != protocol.NudgeCommands {
			t.Errorf("a drain nudges the box with %s", verb)
		}
		if !m.beat(protocol.Presence{Version: "1.1.0", State: "ready", Slots: 4, Free: 4}).Commands {
			t.Error("a box whose nudge was lost is not told of its command by its beat")
		}
		if c := m.next(); len(c.Commands) != 1 || c.Commands[0].Kind != protocol.CommandDrain || c.More {
			t.Errorf("the box is told %+v", c)
		}
		m.done(m.next().Commands[0].ID)
		if m.beat(protocol.Presence{Version: "1.1.0", State: "ready", Slots: 4, Free: 4}).Commands || len(m.next().Commands) > 0 {
			t.Error("a command that was done is still waiting")
		}
		if !f.hello(m, protocol.Hello{Version: "1.1.0", Slots: 4}).Draining {
			t.Error("a draining box is not told so at its hello")
		}
		say(protocol.Presence{Version: "1.1.0", State: "drained", Slots: 4, Free: 4})
		patience.Until(t, "the box is drained", func() bool { return f.box(m.ID).State == Drained })
		f.want(200, "", "POST", "/v1/runners/"+m.ID+"/drain", map[string]bool{"resume": true})
		if verb := patience.Receive(t, "nudge", m.verbs); verb != protocol.NudgeCommands {
			t.Errorf("a resume nudges the box with %s", verb)
		}
		if c := m.next(); len(c.Commands) != 1 || c.Commands[0].Kind != protocol.CommandResume {
			t.Errorf("the box is told %+v", c)
		}

		f.want(200, "", "POST", "/v1/runners/"+m.ID+"/revoke", nil)
		if verb := patience.Receive(t, "nudge", m.verbs); verb != protocol.NudgeProve {
			t.Errorf("a revocation nudges the box with %s", verb)
		}
		for refused := false; !refused; {
			refused = conn.IsRefused(patience.Receive(t, "refusal of the credential", m.states).Err)
		}
	})
}

func TestReissueReachesTheBox(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		f.run()
		m := f.join()
		var r Reissue
		f.want(200, "", "POST", "/v1/runners/"+m.ID+"/creds/reissue", nil).into(t, &r)
		if c := m.next().Commands; len(c) != 1 || c[0].ID != r.CommandID || c[0].Kind != protocol.CommandRotate {
			t.Errorf("the box is told %+v, promised was %s", c, r.CommandID)
		}
		var c Credentials
		f.want(200, "", "POST", "/v1/runners/creds/reissue", map[string]string{"public_key": m.public}, "Authorization",
			"Bearer "+*m.RunToken).into(t, &c)
		if c.RunToken == nil {
			t.Error("an operator's reissue leaves the durable token as it was")
		}
	})
}

// next fetches the box's commands, and done confirms them.
func (m *machine) next() (out protocol.Commands) {
	m.t.Helper()
	ctx := patience.Context(m.t)
	if err := m.conn.Call(ctx, protocol.CallCommands, struct{}{}, &out); err != nil {
		m.t.Fatal(err)
	}
	return out
}

func (m *machine) done(ids ...string) {
	m.t.Helper()
	ctx := patience.Context(m.t)
	if err := m.conn.Call(ctx, protocol.CallDone, protocol.Done{IDs: ids}, nil); err != nil {
		m.t.Fatal(err)
	}
}

func TestOwedCommandsComeInOrderUntilTheyAreDone(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		f.run()
		m, other := f.join(), f.join()
		enqueue := func(c protocol.Command) error {
			t.Helper()
			return f.DB.Write(db.WithAccount(t.Context(), "acme"), func(tx *db.Tx) error { return f.Enqueue(tx, m.ID, c) })
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		const n = commandBatch + 5
		for i := range n {
			must(enqueue(protocol.Command{ID: fmt.Sprintf("c%d", n-i), Kind: protocol.CommandMessage, Run: "r"}))
		}
		must(enqueue(protocol.Command{ID: "c1", Kind: protocol.CommandMessage, Run: "r"}))
		ids := func(c protocol.Commands) (out []string) {
			for _, each := range c.Commands {
				out = append(out, each.ID)
			}
			return out
		}
		for range 2 { // the same, as nothing was done
			if got := m.next(); len(got.Commands) != commandBatch || got.Commands[0].ID != fmt.Sprintf("c%d", n) || !got.More {
				t.Errorf("the box is given %v, more %v", ids(got), got.More)
			}
		}
		other.done(ids(m.next())...)
		if got := m.next(); len(got.Commands) != commandBatch {
			t.Errorf("another box struck what it is not owed: %v", ids(got))
		}
		if got := other.next(); len(got.Commands) > 0 {
			t.Errorf("another box is given %v", ids(got))
		}
		m.done(ids(m.next())...)
		if got := m.next(); fmt.Sprint(ids(got)) != "[c5 c4 c3 c2 c1]" || got.More {
			t.Errorf("the rest is %v, more %v", ids(got), got.More)
		}
		m.done(append(ids(m.next()), "unknown")...)
		if left := read(f, countOwed, m.ID); left != 0 {
			t.Errorf("%d are left", left)
		}

		// A few large commands do not make an answer that is too large.
		for i := range 5 {
			must(enqueue(protocol.Command{ID: fmt.Sprint("large", i), Kind: protocol.CommandMessage, Text: strings.Repeat("x", 200<<10)}))
		}
		if got := m.next(); len(got.Commands) != 2 || !got.More {
			t.Errorf("of five large ones %v come, more %v", ids(got), got.More)
		}
		long := strings.Repeat("x", protocol.MaxMessage)
		if err := enqueue(protocol.Command{Kind: protocol.CommandMessage, Text: long}); !fault.IsKind(err, fault.TooLarge) {
			t.Errorf("a command that does not fit: %v", err)
		}
		for i := range maxMessages - 5 {
			must(enqueue(protocol.Command{ID: fmt.Sprint("many", i), Kind: protocol.CommandMessage}))
		}
		if err := enqueue(protocol.Command{Kind: protocol.CommandMessage}); !fault.IsKind(err, fault.Unavailable) {
			t.Errorf("one too many: %v", err)
		}
		// Messages that the box does not read do not delay commands that end a
		// run or move the box.
		must(enqueue(protocol.Command{ID: "halt", Kind: protocol.CommandHalt, Run: "r"}))
		if got := m.next(); got.Commands[0].ID != "halt" {
			t.Errorf("behind messages that wait, a halt is given as %v", ids(got))
		}
		m.done("halt")
		for _, c := range []protocol.Command{{ID: "d1", Kind: protocol.CommandDrain}, {ID: "r1", Kind: protocol.CommandRotate},
			{ID: "r2", Kind: protocol.CommandRotate},
			{ID: "u1", Kind: protocol.CommandResume}, {ID: "d2", Kind: protocol.CommandDrain}} {
			must(enqueue(c))
		}
		f.write(func(tx *db.Tx) error { return DropMessages(tx, m.ID, "acme") })
		if got := m.next(); fmt.Sprint(ids(got)) != "[r2 d2]" {
			t.Errorf("of what the newest makes pointless the box is given %v", ids(got))
		}
		f.write(func(tx *db.Tx) error { _, err := ageCommands.Exec(tx, m.ID); return err })
		must(f.expire(t.Context()))
		if left := read(f, countOwed, m.ID); left != 0 {
			t.Errorf("%d are left after a day", left)
		}
		f.want(200, "", "POST", "/v1/runners/"+m.ID+"/revoke", nil)
		must(enqueue(protocol.Command{Kind: protocol.CommandUpdate}))
		if read(f, countOwed, m.ID) != 0 {
			t.Error("a revoked box is owed a command")
		}
	})
}

var ageCommands = db.S(`UPDATE box_commands SET created_at = 0 WHERE box_id = $1`)

func TestSilentBoxes(t *testing.T) {
	t.Parallel()
	onBoth(t, true, func(t *testing.T, f *fixture) {
		boxID := f.enrolled(publicKey(t)).ID
		heard := map[string]protocol.Presence{boxID: {Version: "1.0.0", State: "ready"}, "unknown": {}}
		if err := f.store(t.Context(), heard); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			silent time.Duration
			want   string
		}{{40 * time.Second, Online}, {50 * time.Second, Stale}, {100 * time.Second, Offline}} {
			f.write(func(tx *db.Tx) error { _, err := backdate.Exec(tx, boxID, tx.Now.Add(-step.silent)); return err })
			if got := f.box(boxID).Presence.Status; string(got) != step.want {
				t.Errorf("before the sweep, after %s: %s, want %s", step.silent, got, step.want)
			}
			if err := f.age(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := read(f, presenceOf, boxID); got != step.want {
				t.Errorf("after %s: %s, want %s", step.silent, got, step.want)
			}
		}
		if err := f.store(t.Context(), heard); err != nil {
			t.Fatal(err)
		}
		// Subscribers learn of each of these changes by its audit row.
		for kind, want := range map[string]int64{"box.online": 2, "box.stale": 1, "box.offline": 1} {
			if n := read(f, countAudit, boxID, kind); n != want {
				t.Errorf("%d rows %s, want %d", n, kind, want)
			}
		}
		if got := read(f, presenceOf, boxID); got != Online {
			t.Errorf("after a new beat: %s", got)
		}
	})
}

var presenceOf = db.Q[string](`SELECT presence FROM boxes WHERE id = $1`)

// TestPresenceAt holds that the presence of a silent box only gets worse with
// time.
func TestPresenceAt(t *testing.T) {
	t.Parallel()
	rank := map[string]int{Online: 0, Stale: 1, Offline: 2}
	rapid.Check(t, func(t *rapid.T) {
		beat := time.UnixMicro(0)
		stored := rapid.SampledFrom([]string{Online, Stale, Offline}).Draw(t, "stored")
		a := time.Duration(rapid.Int64Range(0, int64(3*time.Minute)).Draw(t, "age"))
		b := a + time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "more"))
		if x, y := presenceAt(stored, &beat, beat.Add(a)), presenceAt(stored, &beat, beat.Add(b)); rank[x] > rank[y] {
			t.Fatalf("%s after %s, %s after %s", x, a, y, b)
		}
	})
	if got := presenceAt(Online, nil, time.UnixMicro(0)); got != Offline {
		t.Errorf("without a beat: %s", got)
	}
}

// TestCallsOfARevokedBox holds that the calls of a revoked box are refused
// while the bus has not shut it out yet.
func TestCallsOfARevokedBox(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.SQLite(t), true)
	c := f.enrolled(publicKey(t))
	f.want(200, "", "POST", "/v1/runners/"+c.ID+"/revoke", nil)
	if _, err := f.renew(t.Context(), c.ID, nil); err == nil {
		t.Error("a revoked box gets a credential")
	}
	if _, err := f.Service.hello(t.Context(), c.ID, []byte(`{"v":2,"slots":1}`)); err == nil {
		t.Error("a revoked box is greeted")
	}
	for name, call := range map[string]func(context.Context, string, []byte) (any, error){"beat": f.Service.beat,
		"commands": f.nextCommands} {
		if _, err := call(t.Context(), c.ID, []byte(`{}`)); !fault.IsKind(err, fault.Forbidden) {
			t.Errorf("%s of a revoked box: %v", name, err)
		}
	}
}
