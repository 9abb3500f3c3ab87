package run

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/domain/task"
	"yardmaster/internal/id"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

func TestClaimTellsAll(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		taskID := f.create(task.KindWork)
		st := f.claim(f.boxes[0])
		if st == nil || st.Task != taskID || st.Attempt != 1 || st.Kind != "work" || st.Agent != "claude" || st.Model != "m" ||
			st.TimeoutMS != time.Hour.Milliseconds() || st.Isolation != "landlock" || st.CloneURL != "http://host/"+f.account ||
			st.DefaultRef != "main" ||
			st.Branch != "svc/fix-it--"+taskID[:8] || st.LeaseMS != 60_000 || st.GatewayURL != "http://gateway" || st.Checkout != "c0ffee" {
			t.Fatalf("start %+v", st)
		}
		for _, want := range []string{"# Fix it", "It is broken.", "YARDMASTER_REPORT", "Do not push"} {
			if !strings.Contains(st.Prompt, want) {
				t.Errorf("brief lacks %q:\n%s", want, st.Prompt)
			}
		}
		a, ok, err := f.ResolveToken(context.Background(), st.GitToken, TokenGit)
		if err != nil || !ok || a.Branch != st.Branch || a.TaskID != taskID || a.SessionID == "" || a.RunID != st.Run {
			t.Errorf("git token: %+v %v %v", a, ok, err)
		}
		if f.live(st.GitToken, TokenModel) || !f.live(st.ModelToken, TokenModel) {
			t.Error("tokens answer for the wrong kind")
		}
		f.wantStatus(taskID, task.Claimed)
	})
}

func TestClaimOfChecks(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(task.KindCI)
		st := f.claim(f.boxes[0])
		if st.Agent != "command" || st.Checkout != "c0ffee" || st.Branch != "" || len(st.Command) != 2 || st.Prompt != "" ||
			st.ModelToken != "" || st.GitToken == "" {
			t.Errorf("start %+v", st)
		}
	})
}

func TestClaimIsIdempotent(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		f.create(task.KindWork)
		f.create(task.KindWork)
		c := protocol.Claim{ID: "same", Free: 1}
		first, err := f.Claim(context.Background(), f.boxes[0], c)
		if err != nil {
			t.Fatal(err)
		}
		again, err := f.Claim(context.Background(), f.boxes[0], c)
		if err != nil || again.Run == nil || again.Run.Run != first.Run.Run {
			t.Fatalf("again: %+v %v", again, err)
		}
		if f.live(first.Run.GitToken, TokenGit) || !f.live(again.Run.GitToken, TokenGit) {
			t.Error("the answer that was repeated has the live tokens")
		}
		other, err := f.Claim(context.Background(), f.boxes[1], c)
		if err != nil || other.Run == nil || other.Run.Run == first.Run.Run {
			t.Errorf("another box's claim id is its own: %+v %v", other, err)
		}
		f.mustSay(f.boxes[0], again.Run, 1, finished(protocol.Finished{State: protocol.Failed}))
		spent, err := f.Claim(context.Background(), f.boxes[0], c)
		if err != nil || spent.Run != nil || len(spent.Reasons) != 1 || spent.Reasons[0] != "claim_spent" {
			t.Errorf("spent: %+v %v", spent, err)
		}
	})
}

// TestNoTaskGoesToTwoBoxes holds that each task goes to one box, however many
// claim at once.
func TestNoTaskGoesToTwoBoxes(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const tasks, claims = 12, 20
		for range tasks {
			f.create(task.KindWork)
		}
		type got struct {
			task string
			err  error
		}
		out := make(chan got, claims)
		for i := range claims {
			go func() {
				r, err := f.Claim(context.Background(), f.boxes[i%2], protocol.Claim{ID: id.New(), Free: 1})
				g := got{err: err}
				if r.Run != nil {
					g.task = r.Run.Task
				}
				out <- g
			}()
		}
		seen := map[string]int{}
		for range claims {
			g := <-out
			if g.err != nil {
				t.Fatal(g.err)
			}
			seen[g.task]++
		}
		if len(seen) != tasks+1 || seen[""] != claims-tasks {
			t.Errorf("given away: %v", seen)
		}
	})
}

func TestClaimWaits(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		reply, err := f.Claim(context.Background(), f.boxes[0], protocol.Claim{ID: "now", Free: 1})
		if err != nil || reply.Run != nil || fmt.Sprint(reply.Reasons) != "[queue_empty]" {
			t.Fatalf("empty queue: %+v %v", reply, err)
		}
		ctx := patience.Context(t)
		got := make(chan *protocol.Start, 1)
		go func() {
			r, err := f.Claim(ctx, f.boxes[0], protocol.Claim{ID: "later", Free: 1, WaitMS: 25_000})
			if err != nil {
				t.Error(err)
			}
			got <- r.Run
		}()
		taskID := f.create(task.KindWork)
		if st := <-got; st == nil || st.Task != taskID {
			t.Errorf("waiting claim got %+v", st)
		}
	})
}

func TestConfiguredLease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		const lease = 12 * time.Second
		f.Lease = lease
		scan := func(after time.Duration, taskID string, want task.Status) {
			t.Helper()
			f.pass(after)
			f.scan()
			f.wantStatus(taskID, want)
		}
		// A run that its box does not accept is given away after a third of the
		// lease.
		taskID := f.create(task.KindWork)
		f.claim(f.boxes[0])
		scan(lease/3-time.Second, taskID, task.Claimed)
		scan(2*time.Second, taskID, task.Pending)
		// A run that was accepted is given away after five quarters of the
		// lease.
		st := f.claim(f.boxes[0])
		r, err := f.Accept(context.Background(), f.boxes[0], protocol.Accept{Run: st.Run, Attempt: st.Attempt})
		if err != nil || !r.OK || r.LeaseMS != lease.Milliseconds() || st.LeaseMS != lease.Milliseconds() {
			t.Errorf("claimed for %d ms, accepted: %+v, %v", st.LeaseMS, r, err)
		}
		scan(lease*5/4-time.Second, taskID, task.Claimed)
		scan(2*time.Second, taskID, task.Pending)
		// The box of an ended run still learns how far its events are stored.
		f.pass(time.Hour)
		st = f.claim(f.boxes[0])
		f.mustSay(f.boxes[0], st, 1, ev(protocol.EventAccepted, nil), finished(protocol.Finished{State: protocol.Failed}))
		if r, err = f.Renew(context.Background(), f.boxes[0], protocol.Renew{Run: st.Run, Attempt: st.Attempt}); err != nil || r.OK ||
			r.CommittedSeq != 2 {
			t.Errorf("renewal of a run that is over: %+v, %v", r, err)
		}
	})
}
