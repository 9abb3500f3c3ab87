package flow

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/domain/modelkey"
	"yardmaster/internal/domain/queue"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/domain/template"
	"yardmaster/internal/event"
	"yardmaster/internal/proof/seed"
	"yardmaster/internal/proof/standin"
)

// A queue is told the seats of the account, and the head of a pull request while it is
// open.
func TestQueueRelations(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, tx *db.Tx) {
		err := seed.Add(tx, seed.Account{ID: "large", Seats: 7}, seed.Pull{ID: "open", Account: "acme", Repo: "web", SHA: "c0ffee"},
			seed.Pull{ID: "closed", Account: "acme", Repo: "web", SHA: "c0ffee", State: "closed", Number: 2})
		if err != nil {
			t.Fatal(err)
		}
		if n, err := (QueueRelations{}).Seats(tx, "large"); err != nil || n != 7 {
			t.Errorf("%d seats, %v", n, err)
		}
		for pr, want := range map[string]string{"open": "c0ffee", "closed": "", "gone": ""} {
			if got, err := (QueueRelations{}).PullHead(tx, pr); err != nil || got != want {
				t.Errorf("head of %s: %q, %v", pr, got, err)
			}
		}
	})
}

// A template that is not there demands nothing, and tasks cannot name it.
func TestTemplatesOfTasks(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, tx *db.Tx) {
		for name, there := range map[string]bool{template.Default: true, "gone": false} {
			if ok, err := (TaskTemplates{}).Exists(tx, "acme", name); err != nil || ok != there {
				t.Errorf("%s exists: %v, %v", name, ok, err)
			}
			n, ok, err := QueueTemplates{}.Need(tx, "acme", name)
			if err != nil || ok != there || (n.Agent != "") != there {
				t.Errorf("%s needs %+v, %v, %v", name, n, ok, err)
			}
			all, err := QueueTemplates{}.Needs(tx, "acme", []string{name})
			if _, ok := all[name]; err != nil || ok != there {
				t.Errorf("%s among several: %v, %v", name, all, err)
			}
		}
	})
}

// An ask is scheduled, and onboarding answers, by the queue that tasks are in.
func TestQueueOfAsksAndRungs(t *testing.T) {
	t.Parallel()
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		known := TaskRepos{Hosts: addresses()}
		tasks, waiting := standin.Services(d, event.NewHub(), known, standin.Tasks{Agent: "claude", Places: 9})
		tasks, waiting = standin.Capped(tasks, waiting, 1)
		full := func(want bool) func(*db.Tx) error {
			return func(tx *db.Tx) error {
				got, err := AskQueue{Tasks: tasks, Queue: waiting}.Full(tx)
				if got != want {
					t.Errorf("full: %v, want %v", got, want)
				}
				return err
			}
		}
		write := func(fn func(*db.Tx) error) {
			t.Helper()
			if err := d.Write(db.WithAccount(t.Context(), "acme"), fn); err != nil {
				t.Fatal(err)
			}
		}
		write(func(tx *db.Tx) error {
			return seed.Add(tx, seed.Account{ID: "acme"}, seed.Repo{ID: "web", Account: "acme"},
				seed.Box{ID: "box", Account: "acme", Slots: 2})
		})
		write(full(false))
		write(func(tx *db.Tx) error {
			r, err := known.ByID(tx, "web")
			if err != nil {
				return err
			}
			_, err = tasks.Create(tx, r, task.Spec{Kind: task.KindWork, Sink: task.SinkQueued, Title: "t", Problem: "p"})
			return err
		})
		write(full(true))
		write(func(tx *db.Tx) error {
			f, err := Rungs{Tasks: tasks, Queue: waiting}.Fleet(tx, "user:ann", "web")
			if f.MayClaim != 1 || f.Hold != "" {
				t.Errorf("fleet %+v", f)
			}
			return err
		})
		write(func(tx *db.Tx) error {
			got, err := waiting.Claimable(tx, "box")
			if err == nil && got == nil {
				t.Error("no task is claimable")
			}
			return err
		})
	})
}

// A template rests as long as every key that fits does: those of the account, and not those of
// whoever has one of their own.
func TestNeedOfRestingKeys(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, tx *db.Tx) {
		in := func(d time.Duration) int64 { return tx.Now.Add(d).UnixMicro() }
		for _, id := range []string{"one", "two", "hers"} {
			if _, err := seed.AddKey.Exec(tx, id, "acme", "ok"); err != nil {
				t.Fatal(err)
			}
		}
		do := func(s db.Stmt, args ...any) {
			t.Helper()
			if _, err := s.Exec(tx, args...); err != nil {
				t.Fatal(err)
			}
		}
		need := func() queue.Need {
			t.Helper()
			n, ok, err := QueueTemplates{}.Need(tx, "acme", template.Default)
			all, err2 := QueueTemplates{}.Needs(tx, "acme", []string{template.Default})
			if err != nil || err2 != nil || !ok || !reflect.DeepEqual(all[template.Default], n) {
				t.Fatalf("%+v, %+v, %v, %v", n, all, err, err2)
			}
			return n
		}
		do(seed.OwnKey, "hers", "ann")
		do(seed.RestKey, "one", in(time.Hour), modelkey.Exhausted)
		if n := need(); !n.Rest.Until.IsZero() || n.NoKey != "" {
			t.Errorf("one of two rests: %+v", n)
		}
		do(seed.RestKey, "two", in(time.Minute), modelkey.RateLimited)
		if n := need(); n.Rest.Until.UnixMicro() != in(time.Minute) || !n.Rest.Passes || !slices.Equal(n.Own, []string{"ann"}) {
			t.Errorf("both rest: %+v", n)
		}
		do(seed.RestKey, "hers", in(time.Minute), modelkey.Refused)
		if n := need(); n.Rest.Until.IsZero() || n.Own != nil {
			t.Errorf("hers rests too: %+v", n)
		}
		do(seed.RestKey, "two", in(2*time.Hour), modelkey.RateLimited)
		if n := need(); n.Rest.Until.UnixMicro() != in(time.Hour) || n.Rest.Passes {
			t.Errorf("the spent one is the first: %+v", n)
		}
		do(seed.RestKey, "two", in(-time.Second), modelkey.RateLimited)
		if n := need(); !n.Rest.Until.IsZero() {
			t.Errorf("one may be tried again: %+v", n)
		}
	})
}
