package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"yardmaster/internal/box"
	"yardmaster/internal/proof/chaos"
)

func newCable(t *testing.T) *chaos.Cable {
	t.Helper()
	c, err := chaos.NewCable()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// wired is a stack whose boxes reach its HTTP server through one cable, and a box with
// a cable of its own to NATS.
func wired(t *testing.T, flags ...string) (st *stack, b *machine, http, nats *chaos.Cable) {
	http, nats = newCable(t), newCable(t)
	base := "http://" + http.Addr().String()
	st = newStack(t, append([]string{"--base-url", base}, flags...)...)
	http.Plug(st.listen)
	nats.Plug(strings.TrimPrefix(st.nats, "nats://"))
	b = st.enroll("far", func(id *box.Identity) {
		id.ServerURL, id.NATSURL = base, "nats://"+nats.Addr().String()
	}).run()
	return st, b, http, nats
}

func TestBoxCutOffStopsBeforeItsWorkIsHandedOn(t *testing.T) {
	st, far, http, nats := wired(t, "--lease", short)
	st.script("work", work)
	id := st.file("work", "Be cut off")
	r := st.live(id, 1)
	ticks := far.ticks(r)
	st.until("some lines are stored", func() bool { return len(st.lines(r)) > 10 })
	near := st.enroll("near", nil).run()

	http.Cut()
	nats.Cut()
	before := len(st.times(ticks))
	st.until("the agent works on without a line", func() bool { return len(st.times(ticks)) > before+5 })
	st.until("the work is handed on", func() bool { return len(st.tries(id)) == 2 })
	times := st.times(ticks)
	if last, given := times[len(times)-1], st.tries(id)[1].CreatedAt; !last.Before(given) {
		t.Errorf("the agent on the box that was cut off ticked at %s, its work was handed on at %s", last, given)
	} else {
		t.Logf("the agent stopped %s before its work was handed on", given.Sub(last))
	}

	// Half of the connection returns: the box cannot know yet that it has lost the run,
	// and may try to push.
	http.Restore()
	again := st.live(id, 2)
	if again.BoxID != near.id {
		t.Errorf("the second try is on box %s", again.BoxID)
	}
	near.release(again)
	st.merges(id)
	nats.Restore()
	st.until("the box that was cut off is free again", func() bool {
		left, err := os.ReadDir(filepath.Join(far.data, "runs"))
		return err == nil && len(left) == 0
	})
	if n := len(st.times(ticks)); n > len(times) {
		t.Errorf("the agent ticked %d times after its work was handed on", n-len(times))
	}
	if got := st.outcomes(id); got != "lost(lease_expired) succeeded" {
		t.Errorf("the tries: %s", got)
	}
	st.counted(r)
	st.counted(again)
	// Its work is saved, under its own ref and no other; the merged branch goes after the merge.
	var refs []string
	st.until("the merged branch is gone", func() bool {
		refs = strings.Fields(st.git(st.bare(), "for-each-ref", "--format=%(refname)", "refs/heads", "refs/wip"))
		return !slices.ContainsFunc(refs, func(ref string) bool { return strings.HasPrefix(ref, "refs/heads/svc/") })
	})
	if !slices.Equal(refs, []string{"refs/heads/main", "refs/wip/" + r.ID + "/1"}) {
		t.Errorf("refs after the box came back: %s", refs)
	}

	// The box works normally again: of two concurrent tasks, it gets one. A claim that was
	// under way while it was cut off may bring a run whose lease is nearly over.
	claims := func() int { return strings.Count(far.output(), "nothing to do") }
	old := claims()
	st.until("the box claims anew", func() bool { return claims() > old })
	one, other := st.file("work", "Be cut off no more"), st.file("work", "Nor you")
	a, b := st.live(one, 1), st.live(other, 1)
	if a.BoxID == b.BoxID {
		t.Error("two runs are on a box that takes one")
	}
	at := map[string]*machine{far.id: far, near.id: near}
	at[a.BoxID].release(a)
	at[b.BoxID].release(b)
	st.merges(one)
	st.merges(other)
	st.verify()
}

func TestBoxBrieflyCutOffGoesOn(t *testing.T) {
	st, far, http, nats := wired(t)
	st.script("work", work)
	id := st.file("work", "Be cut off for a moment")
	r := st.live(id, 1)
	ticks := far.ticks(r)
	st.until("some lines are stored", func() bool { return len(st.lines(r)) > 10 })
	http.Cut()
	nats.Cut()
	before := len(st.times(ticks))
	st.until("the agent works on without a line", func() bool { return len(st.times(ticks)) > before+15 })
	http.Restore()
	nats.Restore()
	st.until("what was said meanwhile is stored", func() bool { return len(st.lines(r)) > before+15 })
	far.release(r)
	st.merges(id)
	if got := st.outcomes(id); got != "succeeded" {
		t.Errorf("the cut changed the run: %s", got)
	}
	st.counted(r)
	st.verify()
}
