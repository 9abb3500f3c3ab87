package run

import (
	"context"
	"fmt"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/protocol"
)

// leave does for runs what box.Service does when a box says goodbye.
func (f *fixture) leave(boxID string, held ...protocol.RunRef) {
	f.t.Helper()
	f.write(func(tx *db.Tx) error {
		if _, err := seed.SetPresence.Exec(tx, boxID, "left"); err != nil {
			return err
		}
		tx.Account = "" // a box comes without an account
		return f.HandBack(tx, boxID, held)
	})
}

func TestBoxThatLeavesHandsBackWhatItHasNotBegun(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		box := f.boxes[0]
		f.create(task.KindWork)
		f.create(task.KindWork)
		f.create(task.KindWork)
		fresh, held, missing := f.claim(box), f.claim(box), f.claim(box)
		f.mustSay(box, held, 1, started()...)
		f.mustSay(box, missing, 1, started()...)
		f.leave(box, protocol.RunRef{Run: held.Run, Attempt: held.Attempt}, protocol.RunRef{Run: fresh.Run, Attempt: fresh.Attempt + 1})

		row := f.wantStatus(fresh.Task, task.Pending)
		if row.Charged != 0 || row.Uncharged != 0 || row.FailureKind != nil || row.NotBefore.After(time.UnixMicro(0)) {
			t.Errorf("a task that was handed back is charged for it: %+v", row)
		}
		if r := f.run(box, fresh.Run); r.EndedAt == nil || *r.Outcome != Lost || *r.FailureKind != task.BoxDrained {
			t.Errorf("its run: %+v", r)
		}
		if f.live(fresh.GitToken, TokenGit) || f.live(fresh.ModelToken, TokenModel) {
			t.Error("the tokens of a run that was handed back live on")
		}
		f.wantStatus(held.Task, task.Running)
		if row := f.wantStatus(missing.Task, task.Pending); row.FailureKind == nil || *row.FailureKind != task.BoxLost ||
			row.Uncharged != 1 {
			t.Errorf("the task of a run that its box lost: %+v", row)
		}
		f.leave(box, protocol.RunRef{Run: held.Run, Attempt: held.Attempt}) // again, it changes nothing

		// The claim of the box's next start does not take back the run that is
		// another box's by then.
		other := f.claim(f.boxes[1])
		if other == nil || other.Task != fresh.Task || other.Attempt != 2 {
			t.Fatalf("another box is given %+v", other)
		}
		f.write(func(tx *db.Tx) error { _, err := seed.SetPresence.Exec(tx, box, "online"); return err })
		reply, err := f.Claim(context.Background(), box, protocol.Claim{ID: f.run(box, fresh.Run).ClaimID, Free: 1})
		if err != nil || fmt.Sprint(reply.Reasons) != "[claim_spent]" {
			t.Errorf("the same claim again: %+v, %v", reply, err)
		}
	})
}

func TestClaimOfABoxThatLeftIsGivenNothing(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		ctx := patience.Context(t)
		box := f.boxes[0]
		// A claim waits on this node as the box says goodbye to another.
		type answer struct {
			protocol.ClaimReply
			err error
		}
		got := make(chan answer, 1)
		go func() {
			reply, err := f.Claim(ctx, box, protocol.Claim{ID: "waits", Free: 1, WaitMS: 25_000})
			got <- answer{reply, err}
		}()
		f.leave(box)
		taskID := f.create(task.KindWork)
		if a := <-got; a.err != nil || a.Run != nil || fmt.Sprint(a.Reasons) != "[box_left]" {
			t.Errorf("the claim that waited: %+v", a)
		}
		if st := f.claim(box); st != nil {
			t.Errorf("a box that has left is given %+v", st)
		}
		f.wantStatus(taskID, task.Pending)
		// A claim that read the queue before the box left gets no run either.
		f.write(func(tx *db.Tx) error {
			row, err := f.Queue.Claimable(tx, box)
			if row != nil {
				t.Errorf("it may claim %+v", row)
			}
			return err
		})
	})
}

// TestRenewedRunIsATry holds that a run whose lease the box has renewed counts
// as a try.
func TestRenewedRunIsATry(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, f *fixture) {
		box := f.boxes[0]
		f.create(task.KindWork)
		st := f.claim(box)
		if out, err := f.Renew(context.Background(), box, protocol.Renew{Run: st.Run, Attempt: st.Attempt}); err != nil || !out.OK {
			t.Fatalf("%+v, %v", out, err)
		}
		f.leave(box)
		if row := f.wantStatus(st.Task, task.Pending); row.FailureKind == nil || *row.FailureKind != task.BoxLost || row.Uncharged != 1 {
			t.Errorf("its task: %+v", row)
		}
	})
}
