package app

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/config"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/box"
	"yardmaster/internal/fault"
	"yardmaster/internal/id"
	"yardmaster/internal/policy"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
	"yardmaster/internal/seal"
)

// station is a box that a test speaks for: a true enrollment and connection.
type station struct {
	box.Credentials
	t      *testing.T
	seed   []byte
	secret seal.Recipient
	conn   *conn.Conn
}

// station enrolls a box in the account of a token, and says hello.
func (y *yard) station(token string) *station {
	y.t.Helper()
	must := func(err error) {
		y.t.Helper()
		if err != nil {
			y.t.Fatal(err)
		}
	}
	pair, err := nkeys.CreateUser()
	must(err)
	public, err := pair.PublicKey()
	must(err)
	s := &station{t: y.t}
	s.seed, err = pair.Seed()
	must(err)
	s.secret, err = seal.NewRecipient()
	must(err)
	var enrollment struct{ Token string }
	decode(y.t, y.send("POST", "/v1/runners/enrollments", token, "{}").want(http.StatusCreated), &enrollment)
	decode(y.t, y.send("POST", "/v1/runners/enroll", "", `{"public_key": "`+public+`", "slots": 4}`, "X-Svc-Enroll-Token",
		enrollment.Token).want(http.StatusCreated), &s.Credentials)
	creds := func() (string, []byte) { return s.NATSJWT, slices.Clone(s.seed) }
	s.conn, err = conn.Dial(s.NATSURL, s.ID, creds, conn.Options{Trust: s.trust})
	must(err)
	y.t.Cleanup(s.conn.Close)
	must(s.conn.Wait(patience.Context(y.t)))
	hello := s.hello()
	patience.Until(y.t, "the bus knows the account of the box", func() bool { // which is new to it
		err := s.ask(protocol.CallHello, hello, nil)
		if !errors.Is(err, nats.ErrNoResponders) {
			must(err)
		}
		return err == nil
	})
	must(s.ask(protocol.CallBeat, protocol.Presence{State: "ready", Slots: 4, Free: 4}, nil))
	return s
}

// hello is what the station says of itself as it connects, and the runs that it names.
func (s *station) hello(runs ...protocol.RunRef) protocol.Hello {
	s.t.Helper()
	var signature []byte
	pair, err := nkeys.FromSeed(s.seed)
	if err == nil {
		signature, err = pair.Sign(protocol.KeyStatement(s.ID, s.secret.Public()))
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return protocol.Hello{V: protocol.Version, Slots: 4, Agents: []protocol.AgentInfo{{Name: "builtin"}}, Isolation: []string{"landlock"},
		Holds: map[string][]string{"landlock": protocol.Isolated}, Runs: runs,
		Key: s.secret.Public(), Signature: base64.StdEncoding.EncodeToString(signature)}
}

func (s *station) ask(method string, in, out any) error {
	return s.conn.Call(patience.Context(s.t), method, in, out)
}

// raw is a plain NATS connection with the station's own credential.
func (s *station) raw() *nats.Conn {
	s.t.Helper()
	pair, err := nkeys.FromSeed(s.seed)
	if err != nil {
		s.t.Fatal(err)
	}
	nc, err := nats.Connect(s.NATSURL, nats.UserJWT(func() (string, error) { return s.NATSJWT, nil }, pair.Sign),
		nats.CustomInboxPrefix("_INBOX."+s.ID), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(nc.Close)
	return nc
}

// all that a box of another tenant might change, read, take or spend.
var ofOthers = []db.Query[string]{
	db.Q[string](`SELECT id || ' ' || status || ' ' || attempt || ' ' || COALESCE(failure_kind, '') FROM tasks WHERE account_id = $1
		ORDER BY id`),
	db.Q[string](`SELECT id || ' ' || state || ' ' || committed_seq || ' ' || event_bytes || ' ' || COALESCE(report,
		'') || ' ' || COALESCE(secrets_key, '') || ' ' || lease_expires_at
		FROM runs WHERE account_id = $1 ORDER BY id`),
	db.Q[string](`SELECT e.run_id || ' ' || e.seq || ' ' || e.kind FROM run_events e JOIN runs r ON r.id = e.run_id WHERE r.account_id = $1
		ORDER BY e.run_id, e.seq`),
	db.Q[string](`SELECT k.hash || ' ' || COALESCE(k.revoked_at, 0) FROM run_tokens k JOIN runs r ON r.id = k.run_id WHERE r.account_id = $1
		ORDER BY k.hash`),
	db.Q[string](`SELECT c.id FROM box_commands c JOIN boxes b ON b.id = c.box_id WHERE b.account_id = $1 ORDER BY c.id`),
	db.Q[string](`SELECT id || ' ' || state || ' ' || seal_key || ' ' || nkey || ' ' || COALESCE(nats_account, '') FROM boxes
		WHERE account_id = $1 ORDER BY id`),
	db.Q[string](`SELECT id || ' ' || kind FROM audit WHERE account_id = $1 ORDER BY id`),
}

func (y *yard) snapshot(account string) (out []string) {
	y.t.Helper()
	y.in(account, func(tx *db.Tx) error {
		out = nil
		for _, q := range ofOthers {
			rows, err := q.All(tx, account)
			if err != nil {
				return err
			}
			out = append(out, rows...)
		}
		return nil
	})
	return out
}

// A box of one tenant, with its own true credentials, against a run of another's:
// it commands, reads, forges, takes and destroys nothing.
func TestBoxOfAnotherTenant(t *testing.T) {
	t.Parallel()
	for _, e := range dbtest.Engines() {
		t.Run(e.String(), func(t *testing.T) {
			t.Parallel()
			y := start(t, e)
			y.push("acme/widgets", map[string]string{"README.md": "Widgets.\n"})
			y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(http.StatusCreated)
			y.send("PUT", "/v1/secrets/OPEN_SECRET", y.owner, `{"value": "the canary of acme"}`).want(http.StatusOK)
			victim := y.station(y.owner)
			words := make(chan string, 100)
			if err := victim.conn.Nudges(func(verb string) { words <- verb }); err != nil {
				t.Fatal(err)
			}
			y.send("POST", "/v1/tasks", y.owner,
				`{"repo": "acme/widgets", "title": "Do it", "problem": "Do it."}`).want(http.StatusAccepted)
			var claim protocol.ClaimReply
			if err := victim.ask(protocol.CallClaim, protocol.Claim{ID: "claim-of-acme", Free: 4, WaitMS: 5000}, &claim); err != nil ||
				claim.Run == nil {
				t.Fatalf("the victim's claim: %+v %v", claim, err)
			}
			run := claim.Run.Run
			if err := victim.ask(protocol.CallAccept, protocol.Accept{Run: run, Attempt: 1}, nil); err != nil {
				t.Fatal(err)
			}
			begun := protocol.Envelope{Run: run, Attempt: 1,
				Events: []protocol.Event{{Seq: 1, Kind: protocol.EventAccepted},
					{Seq: 2, Kind: protocol.EventStarted, Data: []byte(`{"agent":"builtin"}`)}}}
			if got, err := victim.conn.Append(t.Context(), begun); err != nil || got.Seq != 2 {
				t.Fatalf("the victim's events: %+v %v", got, err)
			}
			y.send("POST", "/v1/tasks", y.owner,
				`{"repo": "acme/widgets", "title": "And that", "problem": "Wait."}`).want(http.StatusAccepted)
			command := id.New()
			y.in(y.acct, func(tx *db.Tx) error {
				return y.parts.box.Enqueue(tx, victim.ID, protocol.Command{ID: command, Kind: protocol.CommandUpdate})
			})
			<-words // the nudge of that

			rival := y.tenant("rival")
			bob := y.person("bob", rival, policy.Owner)
			evil := y.station(y.mint(rival, &bob, policy.Owner.Ceiling(), nil))
			patience.Until(y.t, "the box of the victim is known to be online", func() bool {
				return strings.Contains(strings.Join(y.snapshot(y.acct), "\n"), " box.online")
			})
			before := y.snapshot(y.acct)

			// By name, through its own calls.
			data, err := json.Marshal(protocol.Finished{State: protocol.Succeeded, Report: "FORGED"})
			if err != nil {
				t.Fatal(err)
			}
			for _, attempt := range []int{1, 2} {
				e := protocol.Envelope{Run: run, Attempt: attempt,
					Events: []protocol.Event{{Seq: 3, Kind: protocol.EventFinished, Data: data}}}
				if got, err := evil.conn.Append(t.Context(), e); err != nil || !got.Closed || got.Seq != 0 {
					t.Errorf("a forged end is answered %+v, %v", got, err)
				}
			}
			ref := protocol.Accept{Run: run, Attempt: 1}
			for _, method := range []string{protocol.CallAccept, protocol.CallRenew} {
				var got protocol.Renewal
				if err := evil.ask(method, ref, &got); err != nil || got.OK || got.CommittedSeq != 0 {
					t.Errorf("%s is answered %+v, %v", method, got, err)
				}
			}
			for _, method := range []string{protocol.CallGitToken, protocol.CallSecrets} {
				if err := evil.ask(method, ref, nil); !fault.IsKind(err, fault.NotFound) {
					t.Errorf("%s is answered %v", method, err)
				}
			}
			var owed protocol.Commands
			if err := evil.ask(protocol.CallCommands, struct{}{}, &owed); err != nil || len(owed.Commands) > 0 {
				t.Errorf("commands.next is answered %+v, %v", owed, err)
			}
			if err := evil.ask(protocol.CallDone, protocol.Done{IDs: []string{command}}, nil); err != nil {
				t.Error(err)
			}
			var stolen protocol.ClaimReply
			if err := evil.ask(protocol.CallClaim, protocol.Claim{ID: "claim-of-acme", Free: 4}, &stolen); err != nil || stolen.Run != nil {
				t.Errorf("the victim's claim, repeated, is answered %+v, %v", stolen, err)
			}
			thief, err := seal.NewRecipient()
			if err != nil {
				t.Fatal(err)
			}
			forged := protocol.Hello{V: protocol.Version, Slots: 4, Runs: []protocol.RunRef{{Run: run, Attempt: 1, Seq: 2}},
				Key: thief.Public(), Signature: "AAAA"}
			if err := evil.ask(protocol.CallHello, forged, nil); err == nil {
				t.Error("a hello with a key that nobody signed is taken")
			}

			// By subject and by reply, past the program that speaks for a box.
			nc := evil.raw()
			me, it := protocol.CallSubject(evil.ID, ""), protocol.CallSubject(victim.ID, "")
			hello, err := json.Marshal(forged)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []*nats.Msg{
				{Subject: it + protocol.CallClaim, Data: []byte(`{"id":"x","free":1}`)},
				{Subject: it + protocol.CallHello, Data: hello},
				{Subject: me + protocol.CallClaim, Reply: it + protocol.CallClaim, Data: []byte(`{"id":"x","free":1}`)},
				{Subject: me + protocol.CallBeat, Reply: it + protocol.CallBeat, Data: []byte(`{"state":"drained"}`)},
				{Subject: me + protocol.CallBeat, Reply: protocol.ControlSubject(victim.ID, protocol.NudgeProve),
					Data: []byte(`{"state":"ready"}`)},
				{Subject: me + protocol.CallPing, Reply: "_INBOX." + victim.ID + ".x"},
				{Subject: me + protocol.CallPing, Header: nats.Header{"Nats-Trace-Dest": {protocol.ControlSubject(victim.ID, "x")}}},
				{Subject: protocol.ControlSubject(victim.ID, protocol.NudgeProve)},
				{Subject: "evt." + victim.ID + "." + run + ".1", Data: data},
				{Subject: "$JS.API.STREAM.DELETE.EVT"},
				{Subject: me + "nothing", Reply: "$JS.API.STREAM.DELETE.EVT"},
			} {
				if err := nc.PublishMsg(m); err != nil {
					t.Fatal(err)
				}
			}
			if err := nc.FlushTimeout(patience.Of(t)); err != nil {
				t.Fatal(err)
			}
			for _, subject := range []string{"$JS.API.INFO", "$JS.API.STREAM.NAMES"} {
				if err := nc.PublishRequest(subject, "_INBOX."+evil.ID+".x", nil); err != nil {
					t.Fatal(err)
				}
				if err := nc.FlushTimeout(patience.Of(t)); err != nil {
					t.Fatal(err)
				}
				if err := nc.LastError(); !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), `"`+subject+`"`) {
					t.Errorf("%s is not refused: %v", subject, err)
				}
			}

			// A disk is not filled by what is nobody's.
			size := folderSize(t, y.cfg.Data)
			for i := range 50 {
				e := protocol.Envelope{Run: fmt.Sprint("made-up-", i), Attempt: 1,
					Events: []protocol.Event{{Seq: 1, Kind: protocol.EventUpdate, Data: []byte(`"` + strings.Repeat("x", 200<<10) + `"`)}}}
				if got, err := evil.conn.Append(t.Context(), e); err != nil || !got.Closed {
					t.Errorf("an event of a run that is not: %+v %v", got, err)
				}
			}
			if more := folderSize(t, y.cfg.Data) - size; more > 1<<20 {
				t.Errorf("10 MB of made-up events took %d KB of the disk", more>>10)
			}

			if after := y.snapshot(y.acct); !slices.Equal(before, after) {
				t.Errorf("the other tenant has changed:\n%s\n\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
			if len(words) > 0 {
				t.Errorf("the victim was told %q", <-words)
			}

			// And the victim goes on.
			e := protocol.Envelope{Run: run, Attempt: 1, Events: []protocol.Event{{Seq: 3, Kind: protocol.EventUpdate}}}
			if got, err := victim.conn.Append(t.Context(), e); err != nil || got.Seq != 3 || got.Closed {
				t.Errorf("the victim's next event: %+v %v", got, err)
			}
			var sealed protocol.Secrets
			if err := victim.ask(protocol.CallSecrets, ref, &sealed); err != nil || strings.Contains(sealed.Sealed, "canary") {
				t.Fatalf("the victim's secrets: %+v %v", sealed, err)
			}
			if text, err := victim.secret.Open(protocol.SecretsPurpose(run), sealed.Sealed); err != nil || len(text) < 20 {
				t.Errorf("the victim's secrets: %q %v", text, err)
			}
			if err := victim.ask(protocol.CallCommands, struct{}{}, &owed); err != nil || len(owed.Commands) != 1 ||
				owed.Commands[0].ID != command {
				t.Errorf("the victim's commands: %+v %v", owed, err)
			}
		})
	}
}

// Who has all of a box's connection, but not its own key, has nothing that was
// sealed to the box: neither tokens nor secrets.
func TestSeatOnTheBusIsNotEnough(t *testing.T) {
	t.Parallel()
	y := start(t, db.SQLite)
	y.push("acme/widgets", map[string]string{"README.md": "Widgets.\n"})
	y.send("POST", "/v1/billing/keys", y.owner, `{"provider": "scripted"}`).want(http.StatusCreated)
	victim := y.station(y.owner)
	y.send("POST", "/v1/tasks", y.owner, `{"repo": "acme/widgets", "title": "Do it", "problem": "Do it."}`).want(http.StatusAccepted)
	thief, err := seal.NewRecipient()
	if err != nil {
		t.Fatal(err)
	}
	// What it can say, it says in the box's name.
	err = victim.ask(protocol.CallHello,
		protocol.Hello{V: protocol.Version, Slots: 4, Key: thief.Public(),
			Signature: base64.StdEncoding.EncodeToString(make([]byte, 64))}, nil)
	if !fault.IsKind(err, fault.Forbidden) {
		t.Errorf("a hello with the thief's key: %v", err)
	}
	var claim protocol.ClaimReply
	if err := victim.ask(protocol.CallClaim, protocol.Claim{ID: "c", Free: 4, WaitMS: 5000}, &claim); err != nil || claim.Run == nil {
		t.Fatalf("claim: %+v %v", claim, err)
	}
	if claim.Run.GitToken+claim.Run.ModelToken != "" {
		t.Error("tokens in plain")
	}
	if _, err := thief.Open(protocol.TokensPurpose(claim.Run.Run), claim.Sealed); err == nil {
		t.Error("the thief opens the tokens")
	}
	var git protocol.GitToken
	if err := victim.ask(protocol.CallGitToken, protocol.GitTokenAsk{Run: claim.Run.Run, Attempt: 1}, &git); err != nil {
		t.Fatal(err)
	}
	if _, err := thief.Open(protocol.TokensPurpose(claim.Run.Run), git.Sealed); err == nil {
		t.Error("the thief opens a push token")
	}
	if _, err := victim.secret.Open(protocol.TokensPurpose(claim.Run.Run), git.Sealed); err != nil {
		t.Errorf("the box does not: %v", err)
	}
}

// With new keys of the bus every credential from before is refused, also one that
// whoever had the old keys would make, and boxes move over by asking over HTTPS.
func TestBusKeysRotated(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, e db.Engine, flags []string) {
		y := start(t, e, flags...)
		s := y.station(y.owner)
		before, err := busKeys(t.Context(), y.db, y.ring)
		if err != nil {
			t.Fatal(err)
		}
		y.stop()
		cfg, err := config.Load("test", flags, func(string) (string, bool) { return "", false }, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		chest, err := OpenKeys(t.Context(), cfg, true)
		if err == nil {
			err = errors.Join(chest.RotateBus(t.Context(), &said), chest.Close())
		}
		if err != nil || !strings.Contains(said.String(), "new keys") {
			t.Fatalf("%q %v", said.String(), err)
		}
		y = y.again(e, flags)
		after, err := busKeys(t.Context(), y.db, y.ring)
		if err != nil || after.SigningSeed == before.SigningSeed || after.OperatorSeed == before.OperatorSeed ||
			after.AccountSeed == before.AccountSeed || after.SystemSeed == before.SystemSeed {
			t.Errorf("seeds are as before, %v", err)
		}
		pair, err := nkeys.FromSeed(s.seed)
		if err != nil {
			t.Fatal(err)
		}
		login := func() error {
			nc, err := nats.Connect(y.NATSURL(), nats.UserJWT(func() (string, error) { return s.NATSJWT, nil }, pair.Sign))
			if err == nil {
				nc.Close()
			}
			return err
		}
		if err := login(); !errors.Is(err, nats.ErrAuthorization) {
			t.Errorf("a credential from before: %v", err)
		}
		public, err := pair.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		decode(t, y.send("POST", "/v1/runners/creds/reissue", "", `{"public_key": "`+public+`"}`, "Authorization",
			"Bearer "+*s.RunToken).want(http.StatusOK), &s.Credentials)
		if err := login(); err != nil {
			t.Errorf("the new credential: %v", err)
		}
	})
}

func folderSize(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil {
			n += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
