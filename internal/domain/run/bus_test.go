package run

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"yardmaster/internal/bus"
	"yardmaster/internal/bus/boxconn"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/event"
	"yardmaster/internal/protocol"
)

// dial connects a box to the bus.
func (f *fixture) dial(b *bus.Bus, boxID string) *boxconn.Conn {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	pair, err := nkeys.CreateUser()
	if err != nil {
		f.t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		f.t.Fatal(err)
	}
	seed, err := pair.Seed()
	if err != nil {
		f.t.Fatal(err)
	}
	if err := b.AddBox(ctx, boxID); err != nil {
		f.t.Fatal(err)
	}
	token, err := b.Issue(boxID, public, time.Hour)
	if err != nil {
		f.t.Fatal(err)
	}
	c, err := boxconn.Dial(b.URL(), boxID, func() (string, []byte) { return token, append([]byte(nil), seed...) }, boxconn.Options{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(c.Close)
	if err := c.Wait(ctx); err != nil {
		f.t.Fatal(err)
	}
	return c
}

// A box claims, accepts, reports over NATS, and is fenced when its lease is gone.
func TestOverTheBus(t *testing.T) {
	f := open(t, dbtest.DSN(t, db.SQLite))
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	keys, err := bus.NewKeys()
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.Start(ctx, bus.Config{Dir: t.TempDir(), Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	f.Bus = b
	stop, err := f.Serve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	box := f.dial(b, f.boxes[0])

	// begin claims the task, waiting for it, and reports the start of the run.
	begin := func(claim string, attempt int, create func() string) (st *protocol.Start, last uint64) {
		t.Helper()
		claimed := make(chan protocol.ClaimReply, 1)
		go func() {
			var reply protocol.ClaimReply
			if err := box.Call(ctx, protocol.CallClaim, protocol.Claim{ID: claim, Free: 1, WaitMS: 10_000}, &reply); err != nil {
				t.Error(err)
			}
			claimed <- reply
		}()
		taskID := create()
		reply := <-claimed
		if reply.Run == nil || reply.Run.Task != taskID || reply.Run.Attempt != attempt {
			t.Fatalf("claim: %+v", reply)
		}
		st = reply.Run
		var renewal protocol.Renewal
		if err := box.Call(ctx, protocol.CallAccept, protocol.Accept{Run: st.Run, Attempt: attempt}, &renewal); err != nil || !renewal.OK {
			t.Fatalf("accept: %+v %v", renewal, err)
		}
		running := f.Hub.Watch(event.TaskTopic(taskID))
		events := started()
		for i := range events {
			events[i].Seq = int64(i + 1)
		}
		last, err := box.Publish(ctx, protocol.Envelope{V: 1, Run: st.Run, Attempt: attempt, Events: events}, 0)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-running:
		case <-ctx.Done():
			t.Fatal("events did not arrive")
		}
		f.wantStatus(taskID, task.Running)
		return st, last
	}
	late := func(st *protocol.Start, last uint64) error {
		e := finished(protocol.Finished{State: protocol.Succeeded, Report: "too late"})
		e.Seq = 5
		_, err := box.Publish(ctx, protocol.Envelope{V: 1, Run: st.Run, Attempt: st.Attempt, Events: []protocol.Event{e}}, last)
		return err
	}
	lose := func(st *protocol.Start) {
		t.Helper()
		f.pass(2 * time.Minute)
		if err := f.Scan(ctx); err != nil {
			t.Fatal(err)
		}
		f.wantStatus(st.Task, task.Pending)
	}

	st, last := begin("first", 1, func() string { return f.create(task.KindWork) })
	lose(st)
	if err := late(st, last); err == nil {
		t.Error("the bus took an event of a fenced attempt")
	}
	var renewal protocol.Renewal
	if err := box.Call(ctx, protocol.CallRenew, protocol.Renew{Run: st.Run, Attempt: 1}, &renewal); err != nil || renewal.OK {
		t.Errorf("renewal of a lost lease: %+v %v", renewal, err)
	}
	if err := box.Call(ctx, protocol.CallGitToken, protocol.GitTokenAsk{Run: st.Run, Attempt: 1}, new(protocol.GitToken)); err == nil {
		t.Error("a fenced attempt got a push token")
	}

	// A process that stopped between the commit and the fence leaves the fence
	// to its next start.
	st, last = begin("second", 2, func() string { return st.Task })
	f.Bus = nil
	lose(st)
	f.Bus = b
	if err := f.refence(ctx); err != nil {
		t.Fatal(err)
	}
	if err := late(st, last); err == nil {
		t.Error("the bus took an event of an attempt that was fenced at the start")
	}
}
