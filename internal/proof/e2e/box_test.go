package e2e

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestBoxKilledMidRunComesBack(t *testing.T) {
	st := newStack(t)
	st.script("work", `[ ! -e half ] || { echo resumed; rm half; `+deliver+`; exit; }; echo half >half; `+work)
	b := st.join("box")
	id := st.file("work", "Outlive the box")
	r := st.live(id, 1)
	ticks := b.ticks(r)
	st.until("some lines are stored", func() bool { return len(st.lines(r)) > 10 })
	below := b.below()
	if len(below) == 0 {
		t.Fatal("the box has no processes")
	}
	b.kill()
	// The agent dies with its box: it writes nothing any more.
	st.until("the box's processes have ended", func() bool { return !slices.ContainsFunc(below, alive) })
	dead := len(st.times(ticks))
	b.run()
	st.merges(id)

	if got := st.outcomes(id); got != "lost(box_lost) succeeded" {
		t.Errorf("the tries: %s", got)
	}
	tries := st.tries(id)
	if tries[1].ResumeSHA == "" || !slices.Equal(st.lines(tries[1]), []string{"resumed"}) {
		t.Errorf("the second try did not begin from the saved work: %+v, it said %q", tries[1], st.lines(tries[1]))
	}
	if saved := st.git(st.bare(), "show", tries[1].ResumeSHA+":half"); saved != "half" {
		t.Errorf("what was saved of the first try: %q", saved)
	}
	if n := st.counted(tries[0]); n < 10 {
		t.Errorf("%d lines of the first try are stored", n)
	}
	if late := len(st.times(ticks)) - dead; late > 0 {
		t.Errorf("the agent ticked %d times after its box was killed", late)
	}
	st.verify()
}

// The second try finds nothing left to do, and the work of the first one is delivered
// all the same.
func TestBoxKilledWhenAllWasDone(t *testing.T) {
	st := newStack(t)
	st.script("work", `if [ -e done-* ]; then exit; fi; `+deliver+`; while :; do echo line; sleep 0.05; done`)
	b := st.join("box")
	id := st.file("work", "Be lost at the very end")
	r := st.live(id, 1)
	st.until("some lines are stored", func() bool { return len(st.lines(r)) > 10 })
	b.kill()
	b.run()
	st.merges(id)
	if tries := st.tries(id); len(tries) != 2 || tries[1].ResumeSHA == "" {
		t.Errorf("the tries: %+v", tries)
	}
	st.verify()
}

func TestBoxComesBackWithoutItsRuns(t *testing.T) {
	st := newStack(t)
	st.script("work", work)
	b := st.join("box")
	id := st.file("work", "Be lost with a disk")
	r := st.live(id, 1)
	st.until("some lines are stored", func() bool { return len(st.lines(r)) > 10 })
	// While the run is young, its claim counts as being on its way (inFlight of domain/run).
	st.until("the run is old enough to be missed", func() bool { return time.Now().After(r.CreatedAt.Add(5500 * time.Millisecond)) })
	b.kill()
	// The agent writes until its shim notices that the box is dead.
	st.until("its runs are gone from the disk", func() bool { return os.RemoveAll(filepath.Join(b.data, "runs")) == nil })
	b.run()
	again := st.live(id, 2)
	b.release(again)
	st.merges(id)
	if got := st.outcomes(id); got != "lost(box_lost) succeeded" {
		t.Errorf("the tries: %s", got)
	}
	st.counted(r)
	st.verify()
}

func TestBoxKilledMidRunNeverComesBack(t *testing.T) {
	st := newStack(t, "--lease", short)
	st.script("work", work)
	first := st.join("first")
	id := st.file("work", "Outlive the box for good")
	r := st.live(id, 1)
	ticks := first.ticks(r)
	st.until("some lines are stored", func() bool { return len(st.lines(r)) > 10 })
	first.kill()
	second := st.join("second")
	again := st.live(id, 2)
	if again.BoxID != second.id {
		t.Errorf("the second try is on box %s", again.BoxID)
	}
	second.release(again)
	st.merges(id)

	if got := st.outcomes(id); got != "lost(lease_expired) succeeded" {
		t.Errorf("the tries: %s", got)
	}
	times := st.times(ticks)
	if last := times[len(times)-1]; !last.Before(again.CreatedAt) {
		t.Errorf("the agent of the killed box ticked at %s, its work was handed on at %s", last, again.CreatedAt)
	}
	st.counted(r)
	st.counted(again)
	st.verify()
}

func TestBoxTakesOverSavedWork(t *testing.T) {
	st := newStack(t)
	st.script("work", `[ ! -e half ] || { echo resumed; rm half; `+deliver+`; exit; }; echo half >half; `+work)
	first := st.join("first")
	id := st.file("work", "Be handed over")
	st.until("some lines are stored", func() bool { return len(st.lines(st.live(id, 1))) > 10 })
	// A machine that is shut down saves its work; nobody starts it again.
	first.stop()
	second := st.join("second")
	st.merges(id)

	if got := st.outcomes(id); got != "lost(box_drained) succeeded" {
		t.Errorf("the tries: %s", got)
	}
	tries := st.tries(id)
	if tries[1].BoxID != second.id || tries[1].ResumeSHA == "" || st.lines(tries[1])[0] != "resumed" {
		t.Errorf("the second box did not go on with the saved work: %+v", tries[1])
	}
	if left, err := filepath.Glob(filepath.Join(first.data, "runs", "*")); err != nil || len(left) > 0 {
		t.Errorf("left on the first box: %v, %v", left, err)
	}
	st.verify()
}

func TestBoxesShareTheQueue(t *testing.T) {
	st := newStack(t)
	st.script("work", deliver)
	var ids []string
	file := func(n int) {
		for range n {
			ids = append(ids, st.file("work", "One of many"))
		}
	}
	// Some tasks wait when the boxes connect; all boxes wait for the others.
	file(3)
	boxes := []*machine{st.enroll("first", nil), st.enroll("second", nil), st.enroll("third", nil)}
	for _, b := range boxes {
		b.begin()
	}
	for _, b := range boxes {
		b.online()
	}
	st.merges(ids[2])
	file(3)
	st.merges(ids[5])
	file(3)
	used := map[string]bool{}
	for _, id := range ids {
		st.merges(id)
		if got := st.outcomes(id); got != "succeeded" {
			t.Errorf("the tries of %s: %s", id, got)
		}
		used[st.tries(id)[0].BoxID] = true
	}
	if len(used) < 2 {
		t.Errorf("the work of all was done by %d box", len(used))
	}
	if got := strings.Join(st.delivered(), " "); strings.Count(got, "done-") != len(ids) {
		t.Errorf("delivered: %s", got)
	}
	st.verify()
}

func TestClaimOfAKilledBoxHoldsNothingUp(t *testing.T) {
	st := newStack(t, "--lease", short)
	st.script("work", deliver)
	dead := st.join("dead")
	done := st.file("work", "Show that the box claims")
	st.merges(done)
	// The box's next claim waits at the server, which cannot know that the box is dead.
	st.until("the box claims again", func() bool { return strings.Contains(dead.output(), "nothing to do") })
	dead.kill()
	id := st.file("work", "Be claimed by a dead box")
	alive := st.join("alive")
	st.merges(id)

	tries := st.tries(id)
	if last := tries[len(tries)-1]; last.BoxID != alive.id {
		t.Errorf("the work was done by box %s", last.BoxID)
	}
	st.verify()
	// A box that works has 25 s to reconnect; one that has accepted nothing, a third of the
	// lease to do so. If the dead box got the task at all, its lease was as short.
	d, err := sql.Open("sqlite", "file:"+st.path("server/yardmaster.db")+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if first := tries[0]; first.BoxID == dead.id {
		var lasts int64
		if err := d.QueryRow(`SELECT lease_expires_at - created_at FROM runs WHERE id = ?`, first.ID).Scan(&lasts); err != nil {
			t.Fatal(err)
		}
		if lease := time.Duration(lasts) * time.Microsecond; lease > 20*time.Second/2 {
			t.Errorf("the dead box had the task for %s, as if it had accepted it", lease)
		}
	}
}

func TestWorkOfARunThatIsReassignedGoesOnOnAnotherBox(t *testing.T) {
	st := newStack(t)
	st.join("far")
	st.script("work", `date >>"half-$(cat /proc/sys/kernel/random/uuid)"; `+work)
	id := st.file("work", "Go on elsewhere")
	r := st.live(id, 1)
	st.until("some lines are stored", func() bool { return len(st.lines(r)) > 3 })
	near := st.join("near")
	st.call(http.MethodPost, "/v1/tasks/"+id+"/reassign", nil, nil)
	again := st.live(id, 2)
	if again.BoxID != near.id { // near was idle while the other box still saved
		t.Fatalf("the second try is on box %s", again.BoxID)
	}
	near.release(again)
	st.merges(id)
	saved := "refs/wip/" + r.ID + "/1"
	files := strings.Fields(st.git(st.bare(), "ls-tree", "--name-only", "main"))
	halves := slices.DeleteFunc(files, func(name string) bool { return !strings.HasPrefix(name, "half-") })
	if len(halves) != 2 {
		t.Errorf("the second try merged %s; the first saved %s", halves, st.git(st.bare(), "ls-tree", "--name-only", saved))
	}
	st.git(st.bare(), "merge-base", "--is-ancestor", saved, "main")
	st.verify()
}
