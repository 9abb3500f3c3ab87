package mergequeue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/codehost"
	"yardmaster/internal/db"
	"yardmaster/internal/domain/intent"
)

var intentsOf = db.Q[string](`SELECT kind FROM host_intents WHERE repo_id = $1 ORDER BY created_at, id`)

// enter has an order wait for the queue of its host, which takes it at a place.
func (y *yard) enter(name string, at codehost.QueueEntry, failure error) *order {
	y.t.Helper()
	o := y.approve(name)
	y.write(func(tx *db.Tx) error {
		turn, err := y.nodes[0].Admit(tx, y.repo, Item{
			PRID: o.pr, ActionID: o.action, HeadSHA: o.head, BaseRef: "main", Number: o.number, OrderedAt: o.at,
		}, y.forge.base, true)
		if turn.Go {
			y.t.Error("it is merged past the queue of the host")
		}
		return err
	})
	y.entered(o, at, failure)
	return o
}

// entered is the answer of the host.
func (y *yard) entered(o *order, at codehost.QueueEntry, failure error) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		e, _, err := entryOfPull.Maybe(tx, o.pr)
		if err != nil {
			return err
		}
		return enterer{y.nodes[0]}.Done(tx, intent.Call[hostArgs]{
			Repo: y.repo, Object: o.pr, Args: hostArgs{EntryID: e.ID, Number: o.number, HeadSHA: o.head},
		}, at, failure)
	})
}

func (y *yard) place(o *order) (p Place, in bool) {
	y.t.Helper()
	y.write(func(tx *db.Tx) error {
		all, err := Places(tx, []string{o.pr})
		p, in = all[o.pr]
		return err
	})
	return p, in
}

func (y *yard) wants(what string) int {
	y.t.Helper()
	var kinds []string
	y.write(func(tx *db.Tx) (err error) {
		kinds, err = intentsOf.All(tx, y.repo.ID)
		return err
	})
	return len(slices.DeleteFunc(kinds, func(k string) bool { return k != what }))
}

// The place is the host's word. A head that the host does not have any more was thrown
// out, whether a delivery tells of it or not.
func TestQueueOfHost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		a := y.enter("a", codehost.QueueEntry{Position: 3}, nil)
		if p, in := y.place(a); !in || p.Queue != Host || p.State != Queued || p.Position != 3 || y.wants("mergequeue.enter") != 1 {
			t.Fatalf("its place is %+v, %t", p, in)
		}
		seen := func(o *order, at codehost.QueueEntry, in bool) {
			y.write(func(tx *db.Tx) error { return y.nodes[0].Seen(tx, y.repo, o.pr, at, in) })
			y.nodes[0].Pass(y.ctx())
		}
		seen(a, codehost.QueueEntry{Position: 1, GroupSHA: sum("group")}, true)
		seen(a, codehost.QueueEntry{}, false)
		if p, in := y.place(a); !in || p.Position != 1 {
			t.Errorf("a host that has just queued it is believed at once that it has not: %+v, %t", p, in)
		}
		y.checks[sum("group")] = Result{State: CheckFailed, Why: "these checks failed: build", Log: "boom"}
		y.clock.Add((forgiven + time.Second).Microseconds())
		seen(a, codehost.QueueEntry{}, false)
		if _, in := y.place(a); in || y.rejected[a.pr] != ByCheck {
			t.Errorf("thrown out: %v", y.rejected)
		}
		for exit, want := range []string{
			codehost.ExitUnsaid: ByPerson, codehost.ExitOther: ByPerson, codehost.ExitMerged: "", codehost.ExitConflict: ByConflict,
			codehost.ExitFailed: ByCheck, codehost.ExitSlow: ByCheck,
		} {
			word := fmt.Sprint("exit ", exit)
			o := y.enter(word, codehost.QueueEntry{Position: 1}, nil)
			y.write(func(tx *db.Tx) error { return y.nodes[0].Expelled(tx, y.repo, o.pr, codehost.Exit(exit), word) })
			y.nodes[0].Pass(y.ctx())
			if _, in := y.place(o); y.rejected[o.pr] != want || in != (want == "") {
				t.Errorf("%s: thrown out as %q, in the queue %t", word, y.rejected[o.pr], in)
			}
		}
		for want, failure := range map[string]error{
			ByHead: codehost.ErrHeadMoved, ByRule: &codehost.BlockedError{Missing: []string{"A check is missing."}},
		} {
			o := y.enter("refused "+want, codehost.QueueEntry{}, failure)
			y.nodes[0].Pass(y.ctx())
			if y.rejected[o.pr] != want {
				t.Errorf("%v: %q", failure, y.rejected[o.pr])
			}
		}
	})
}

// An order that is taken back has its head leave the queue of the host, also if the host
// was just taking it in.
func TestLeavesQueueOfHost(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		a := y.enter("a", codehost.QueueEntry{Position: 1}, nil)
		a.open = false
		y.nodes[0].Pass(y.ctx())
		if _, in := y.place(a); in || y.wants("mergequeue.leave") != 1 {
			t.Errorf("in the queue %t, %d intents", in, y.wants("mergequeue.leave"))
		}
		y.write(func(tx *db.Tx) error {
			return enterer{y.nodes[0]}.Done(tx, intent.Call[hostArgs]{Repo: y.repo, Object: a.pr, Args: hostArgs{EntryID: "gone"}},
				codehost.QueueEntry{Position: 1}, nil)
		})
		if y.wants("mergequeue.leave") != 2 {
			t.Error("what the host took in too late stays there")
		}
		b := y.enter("b", codehost.QueueEntry{Position: 1}, nil)
		y.write(func(tx *db.Tx) error { return y.nodes[0].Merged(tx, b.pr, b.action, sum("merge")) })
		if _, in := y.place(b); in || y.wants("mergequeue.leave") != 2 {
			t.Error("a merged head is taken out of the queue")
		}
	})
}
