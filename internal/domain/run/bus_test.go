package run

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"yardmaster/internal/box/conn"
	"yardmaster/internal/bus"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/fault"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// serveBus answers boxes over a real bus. dial connects a box to its account of
// the bus.
func (f *fixture) serveBus() (dial func(boxID string) *conn.Conn) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience.Of(f.t))
	f.t.Cleanup(cancel)
	must := func(err error) {
		f.t.Helper()
		if err != nil {
			f.t.Fatal(err)
		}
	}
	keys, err := bus.NewKeys()
	must(err)
	var owners sync.Map
	b, err := bus.Start(ctx, bus.Config{Keys: keys, Owner: func(_ context.Context, account string) (string, bool, error) {
		boxID, ok := owners.Load(account)
		text, _ := boxID.(string)
		return text, ok, nil
	}})
	must(err)
	f.t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			f.t.Error(err)
		}
	})
	f.Bus = b
	must(f.Serve())
	return func(boxID string) *conn.Conn {
		f.t.Helper()
		pair, err := nkeys.CreateUser()
		must(err)
		public, err := pair.PublicKey()
		must(err)
		seed, err := pair.Seed()
		must(err)
		account, err := b.NewAccount()
		must(err)
		owners.Store(account, boxID)
		token, err := b.Issue(boxID, account, public, time.Hour)
		must(err)
		c, err := conn.Dial(b.URL(), boxID, func() (string, []byte) { return token, append([]byte(nil), seed...) }, conn.Options{})
		must(err)
		f.t.Cleanup(c.Close)
		must(c.Wait(ctx))
		return c
	}
}

// TestOverTheBus holds that a box claims, accepts and reports over NATS and
// gets its tokens sealed, that another box gets nothing of the run, and that
// the box gets nothing more once its lease has expired.
func TestOverTheBus(t *testing.T) {
	t.Parallel()
	f := open(t, dbtest.DSN(t, db.SQLite))
	ctx := patience.Context(t)
	dial := f.serveBus()
	box, foreign := dial(f.boxes[0]), dial(f.boxes[1])
	mine := newRecipient(t)

	// Without a hello there is no key to seal to.
	taskID := f.create(task.KindWork)
	claim := protocol.Claim{ID: "first", Free: 1, WaitMS: 10_000}
	if err := box.Call(ctx, protocol.CallClaim, claim, nil); !fault.IsKind(err, fault.Invalid) {
		t.Errorf("a claim before the hello: %v", err)
	}
	f.setSealKey(f.boxes[0], mine.Public())
	var reply protocol.ClaimReply
	if err := box.Call(ctx, protocol.CallClaim, claim, &reply); err != nil || reply.Run == nil || reply.Run.Task != taskID {
		t.Fatalf("claim: %+v %v", reply, err)
	}
	st := reply.Run
	if st.GitToken != "" || st.ModelToken != "" {
		t.Error("the tokens of a claim travel in plain")
	}
	var tokens protocol.Tokens
	text, err := mine.Open(protocol.TokensPurpose(st.Run), reply.Sealed)
	if err == nil {
		err = json.Unmarshal(text, &tokens)
	}
	if err != nil || !f.live(tokens.Git, TokenGit) || !f.live(tokens.Model, TokenModel) {
		t.Errorf("sealed tokens: %v", err)
	}
	var renewal protocol.Renewal
	if err := box.Call(ctx, protocol.CallAccept, protocol.Accept{Run: st.Run, Attempt: 1}, &renewal); err != nil || !renewal.OK {
		t.Fatalf("accept: %+v %v", renewal, err)
	}
	events := started()
	for i := range events {
		events[i].Seq = int64(i + 1)
	}
	e := protocol.Envelope{Run: st.Run, Attempt: 1, Events: events}
	if got, err := foreign.Append(ctx, e); err != nil || !got.Closed || got.Seq != 0 {
		t.Errorf("another box appends: %+v %v", got, err)
	}
	for range 2 { // an answer that was lost
		if got, err := box.Append(ctx, e); err != nil || got.Closed || got.Seq != int64(len(events)) {
			t.Errorf("append: %+v %v", got, err)
		}
	}
	f.wantStatus(taskID, task.Running)
	gap := protocol.Envelope{Run: st.Run, Attempt: 1, Events: []protocol.Event{{Seq: 7, Kind: protocol.EventUpdate}}}
	if got, err := box.Append(ctx, gap); err != nil || got.Closed || got.Seq != int64(len(events)) {
		t.Errorf("append after a gap: %+v %v", got, err)
	}
	for name, ask := range map[string]struct {
		method string
		in     any
	}{
		"token":   {protocol.CallGitToken, protocol.GitTokenAsk{Run: st.Run, Attempt: 1}},
		"secrets": {protocol.CallSecrets, protocol.SecretsAsk{Run: st.Run, Attempt: 1}},
	} {
		if err := foreign.Call(ctx, ask.method, ask.in, nil); !fault.IsKind(err, fault.NotFound) {
			t.Errorf("another box asks for the %s: %v", name, err)
		}
	}
	renewal = protocol.Renewal{}
	if err := foreign.Call(ctx, protocol.CallRenew, protocol.Renew{Run: st.Run, Attempt: 1}, &renewal); err != nil || renewal.OK ||
		renewal.CommittedSeq != 0 {
		t.Errorf("another box renews: %+v %v", renewal, err)
	}

	f.pass(2 * time.Minute)
	f.scan()
	f.wantStatus(taskID, task.Pending)
	end := finished(protocol.Finished{State: protocol.Succeeded, Report: "too late"})
	end.Seq = 5
	late := protocol.Envelope{Run: st.Run, Attempt: 1, Events: []protocol.Event{end}}
	if got, err := box.Append(ctx, late); err != nil || !got.Closed || got.Seq != 4 {
		t.Errorf("an event of a fenced attempt: %+v %v", got, err)
	}
	if err := box.Call(ctx, protocol.CallRenew, protocol.Renew{Run: st.Run, Attempt: 1}, &renewal); err != nil || renewal.OK {
		t.Errorf("renewal of a lost lease: %+v %v", renewal, err)
	}
	if err := box.Call(ctx, protocol.CallGitToken, protocol.GitTokenAsk{Run: st.Run, Attempt: 1}, nil); err == nil {
		t.Error("a fenced attempt got a push token")
	}
}

// TestRunThatSaysTooMuch holds that the events of a run are limited: beyond the
// limit its box is refused, and no other box.
func TestRunThatSaysTooMuch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(task.KindWork)
		f.create(task.KindWork)
		loud, quiet := f.claim(f.boxes[0]), f.claim(f.boxes[1])
		f.mustSay(f.boxes[0], loud, 1, started()...)
		f.write(func(tx *db.Tx) error { _, err := fill.Exec(tx, loud.Run, protocol.MaxRunBytes-1000); return err })
		if err := f.say(f.boxes[0], loud, 5, ev(protocol.EventUpdate, make([]byte, 2000))); !fault.IsKind(err, fault.TooLarge) {
			t.Errorf("an event that does not fit: %v", err)
		}
		binary := protocol.Event{Kind: protocol.EventUpdate, Data: []byte("\"\xff\"")}
		if err := f.say(f.boxes[0], loud, 5, binary); !fault.IsKind(err, fault.Invalid) {
			t.Errorf("an event that is no text: %v", err)
		}
		f.mustSay(f.boxes[0], loud, 5, ev(protocol.EventUpdate, "little"))
		f.mustSay(f.boxes[1], quiet, 1, started()...)
		if got := f.run(f.boxes[0], loud.Run).CommittedSeq; got != 5 {
			t.Errorf("committed up to %d", got)
		}
	})
}

var fill = db.S(`UPDATE runs SET event_bytes = $2 WHERE id = $1`)

// TestDismissedClaim holds that a claim of a process that has ended takes no
// task from the next process.
func TestDismissedClaim(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := context.Background()
		ends := make(chan protocol.ClaimReply, 1)
		go func() {
			reply, err := f.Claim(ctx, f.boxes[0], protocol.Claim{ID: "c", Free: 1, WaitMS: 25_000})
			if err != nil {
				t.Error(err)
			}
			ends <- reply
		}()
		for waits := false; !waits; {
			f.waiting.mu.Lock()
			waits = len(f.waiting.claims[f.boxes[0]]) == 1
			f.waiting.mu.Unlock()
		}
		if _, err := f.Verdicts(ctx, f.boxes[0], nil); err != nil { // the next process says hello
			t.Fatal(err)
		}
		if reply := <-ends; reply.Run != nil || len(reply.Reasons) != 1 || reply.Reasons[0] != "claim_dismissed" {
			t.Errorf("the claim is answered %+v", reply)
		}
		f.create(task.KindWork)
		if reply, err := f.Claim(ctx, f.boxes[0], protocol.Claim{ID: "c", Free: 1}); err != nil || reply.Run == nil {
			t.Errorf("the next process's claim: %+v %v", reply, err)
		}
	})
}
