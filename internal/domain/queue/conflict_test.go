package queue

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/seed"
)

// host answers from tables, and counts.
type host struct {
	changes   map[string][]string
	conflicts map[string][]string // by both commits
	asked     []string
}

func (h *host) Changes(_ context.Context, _, sha string) ([]string, error) {
	h.asked = append(h.asked, sha)
	return h.changes[sha], nil
}

func (h *host) Conflicts(_ context.Context, _, a, b string) ([]string, error) {
	h.asked = append(h.asked, a+" "+b)
	if a == "gone" {
		return nil, fmt.Errorf("no commit %s", a)
	}
	return h.conflicts[a+" "+b], nil
}

// foresee makes the fixture's repositories watch for conflicts.
func (f *fixture) foresee(mode string) *host {
	h := &f.host
	h.changes, h.conflicts = map[string][]string{}, map[string][]string{}
	f.others.conflicts, f.seats = mode, 100
	f.write("", func(tx *db.Tx) error {
		err := seed.Add(tx, seed.Box{ID: "large", Account: "acme", Slots: 100})
		return err
	})
	f.box = "large"
	return h
}

// next claims as a box does: it looks, asks, and claims.
func (f *fixture) next() string {
	f.t.Helper()
	for range 20 {
		var o Outlook
		err := f.DB.Read(context.Background(), func(tx *db.Tx) (err error) { o, err = f.Look(tx, f.box); return err })
		if err != nil {
			f.t.Fatal(err)
		}
		if o.Asks() {
			if err := f.Ask(context.Background(), o); err != nil {
				f.t.Fatal(err)
			}
			continue
		}
		if !o.Work {
			return ""
		}
		if id := f.claimOnce(); id != "" {
			return id
		}
	}
	f.t.Fatal("looking leads to nothing")
	return ""
}

func (f *fixture) propose(id, sha string) {
	f.t.Helper()
	f.change(id, func(tx *db.Tx, t *task.Row) error {
		if t.Status == task.Claimed {
			if err := f.MarkRunning(tx, t); err != nil {
				return err
			}
		}
		return f.ToAwaitingCI(tx, t, "pr-"+sha)
	})
}

func TestConflictHolds(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		h := f.foresee(ConflictsHold)
		first := f.create(object{"files": []string{"web/**"}})
		if f.next() != first {
			f.t.Fatal("nothing is open yet")
		}
		second := f.create(object{"files": []string{"web/login.go", "docs/login.md"}})
		third := f.create(object{"files": []string{"docs"}})
		if got := f.next(); got != third {
			f.t.Fatalf("claimed %s, want the one that touches other files", got)
		}
		held := f.get(second)
		hold := held["holds"].([]any)[0].(object)
		if got := reasons(held); len(got) != 1 || got[0] != task.HoldConflict || !strings.Contains(hold["clears_when"].(string), first) ||
			!strings.Contains(hold["clears_when"].(string), "web/**") || f.next() != "" {
			f.t.Fatalf("holds %v", held["holds"])
		}
		st := f.call("acme", "GET", "/v1/queue/status", nil, 200)["data"].([]any)
		if len(st) != 1 || st[0].(object)["reason"] != task.HoldConflict || st[0].(object)["task_ids"].([]any)[0] != second {
			f.t.Errorf("queue status %v", st)
		}
		f.lanesAgree("acme")

		// What the work really changed decides, once it can be seen.
		h.changes["a1"], h.changes["c3"] = []string{"web/style.css"}, []string{"docs/login.md"}
		f.propose(first, "a1")
		if f.next() != "" || !strings.Contains(fmt.Sprint(f.get(second)["holds"]), third) {
			f.t.Fatalf("holds %v, want the third", f.get(second)["holds"])
		}
		f.propose(third, "c3")
		if f.next() != "" {
			f.t.Fatal("its pull request touches the same file")
		}
		asked := len(h.asked)
		f.change(third, f.Merged)
		if got := f.next(); got != second {
			f.t.Fatalf("after the merge: %q", got)
		}
		if len(h.asked) != asked {
			f.t.Errorf("asked again: %v", h.asked)
		}
		f.lanesAgree("acme")
	})
}

func TestConflictsOfSavedWork(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		h := f.foresee(ConflictsStack)
		second := f.create(nil)
		f.next()
		f.change(second, func(tx *db.Tx, t *task.Row) error {
			if err := f.SetWIP(tx, t, "b2", []string{"a.go"}); err != nil {
				return err
			}
			return f.Requeue(tx, t, task.StopReassigned)
		})
		f.change(second, func(tx *db.Tx, t *task.Row) error { return f.Hold(tx, t, task.Blocked, "wait") })
		first := f.create(object{"files": []string{"a.go"}})
		if f.next() != first {
			f.t.Fatal("a task that is parked is in nobody's way")
		}
		f.propose(first, "a1")
		h.changes["a1"], h.conflicts["b2 a1"] = []string{"a.go"}, []string{"a.go"}
		f.change(second, f.Release)
		if f.next() != "" || len(reasons(f.get(second))) != 1 {
			f.t.Fatalf("two works that conflict: %v", f.get(second)["holds"])
		}
		// A new head that merges cleanly is in nobody's way, nor is a commit
		// that is not there.
		h.changes["a2"] = []string{"a.go"}
		f.propose2(first, "a2")
		if f.next() != second {
			f.t.Errorf("works that merge: %v", f.get(second)["holds"])
		}
		if want := "a1,b2 a1,a2,b2 a2"; strings.Join(h.asked, ",") != want {
			f.t.Errorf("asked %v, want %s", h.asked, want)
		}
		f.change(second, func(tx *db.Tx, t *task.Row) error {
			if err := f.SetWIP(tx, t, "gone", []string{"a.go"}); err != nil {
				return err
			}
			return f.Requeue(tx, t, task.StopReassigned)
		})
		if f.next() != second {
			f.t.Errorf("a commit that is gone: %v", f.get(second)["holds"])
		}
	})
}

// propose2 is a new head of a pull request that was green.
func (f *fixture) propose2(id, sha string) {
	f.change(id, func(tx *db.Tx, t *task.Row) error {
		if err := f.ToMergeable(tx, t); err != nil {
			return err
		}
		return f.ToAwaitingCI(tx, t, "pr-"+sha)
	})
}

func TestConflictStacks(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		h := f.foresee(ConflictsStack)
		first := f.create(object{"files": []string{"a.go"}})
		f.next()
		second := f.create(object{"files": []string{"a.go"}})
		if f.next() != "" {
			f.t.Fatal("there is nothing to begin on yet")
		}
		h.changes["a1"] = []string{"a.go"}
		f.propose(first, "a1")
		if f.next() != second {
			f.t.Fatalf("not begun on the first: %v", f.get(second)["holds"])
		}
		var row task.Row
		f.change(second, func(_ *db.Tx, t *task.Row) error { row = *t; return nil })
		if row.StackedOn == nil || *row.StackedOn != first || row.StartSHA == nil || *row.StartSHA != "a1" {
			f.t.Errorf("begun on %v at %v", row.StackedOn, row.StartSHA)
		}
		unmerged := func() (on string, dropped bool) {
			f.write("acme", func(tx *db.Tx) (err error) { on, dropped, err = task.Unmerged(tx, second); return err })
			return on, dropped
		}
		if on, dropped := unmerged(); on != first || dropped {
			f.t.Errorf("waits for %q %v", on, dropped)
		}
		// The next try goes on where it was.
		f.change(second, func(tx *db.Tx, t *task.Row) error { return f.Requeue(tx, t, task.StopReassigned) })
		if f.next() != second {
			f.t.Errorf("held: %v", f.get(second)["holds"])
		}
		f.change(first, f.Merged)
		if on, _ := unmerged(); on != "" {
			f.t.Errorf("still waits for %s", on)
		}
	})
}

func TestConflictsIgnored(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		h := f.foresee(ConflictsIgnore)
		for range 2 {
			f.create(object{"files": []string{"a.go"}})
		}
		one, other := f.next(), f.next()
		if one == "" || other == "" || len(h.asked) > 0 {
			f.t.Errorf("claimed %q and %q, asked %v", one, other, h.asked)
		}
	})
}

// A queue that waits for one work is held back, and let go, a bit at a time.
func TestManyConflicts(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.foresee(ConflictsHold)
		first := f.create(object{"files": []string{"a.go"}})
		f.next()
		for range 3 * maxHeldBack {
			f.create(object{"files": []string{"a.go"}})
		}
		free := f.create(object{"files": []string{"b.go"}, "priority": 0})
		if got := f.next(); got != free {
			f.t.Errorf("claimed %q, want the one behind them", got)
		}
		f.lanesAgree("acme")
		f.call("acme", "POST", "/v1/tasks/"+first+"/cancel", nil, 200)
		if f.next() == "" || f.next() != "" {
			f.t.Error("one of them goes on, and holds the others")
		}
		f.lanesAgree("acme")
	})
}

func TestGlobs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		mine, theirs string
		want         bool
	}{
		{"a.go", "a.go", true}, {"a.go", "b.go", false}, {"web", "web/a.go", true}, {"web/", "web/a.go", true},
		{"web", "website/a.go", false},
		{"web/a.go", "web", true}, {"web/*.go", "web/a.go", true}, {"web/*.go", "web/x/a.go", false}, {"web/**", "web/x/a.go", true},
		{"**/*.md", "docs/x.md", true}, {"**/*.md", "x.md", true}, {"**/*.md", "x.go", false}, {"a?c", "abc", true}, {"a?c", "a/c", false},
		{"web/**", "docs/**", false}, {"web/**", "web/*.go", true}, {"**", "docs/**", true}, {"x.go", "*.go", true},
		{"x.md", "*.go", false},
		{"a.b", "aXb", false}, {"a+(b*", "a+(bc", true},
	} {
		got := compile([]string{"other", tc.mine}).overlap([]string{tc.theirs})
		if slices.Contains(got, tc.theirs) != tc.want {
			t.Errorf("%s and %s meet: %v", tc.mine, tc.theirs, !tc.want)
		}
		back := compile([]string{tc.theirs}).overlap([]string{tc.mine})
		if (len(back) > 0) != tc.want {
			t.Errorf("%s and %s meet: %v, the other way round", tc.theirs, tc.mine, !tc.want)
		}
	}
}
