package overview

import (
	"testing"
	"time"

	"yardmaster/internal/api/op"
	"yardmaster/internal/db"
	"yardmaster/internal/proof/seed"
)

// Loads implements Boxes.
func (y *yard) Loads(*db.Tx, int) ([]BoxLoad, error) { return y.boxes, nil }

// Ages implements Knowledge.
func (y *yard) Ages(*db.Tx, []string) (map[string]PageAge, error) { return y.pages, nil }

func (y *yard) utilized() Utilization {
	y.t.Helper()
	out, err := y.utilization(db.WithAccount(y.t.Context(), "acme"), op.None{})
	if err != nil {
		y.t.Fatal(err)
	}
	return out
}

// Lanes are those of the account, the deepest first; one that is empty is none.
func TestLanes(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.add(seed.Repo{ID: "far", Account: "rival"})
		y.do(seed.AddLane, "acme", "web", 50)
		y.do(seed.AddLane, "acme", "api", 90)
		y.do(seed.AddLane, "rival", "far", 50)
		y.do(seed.FillQueue, "acme")
		b := y.utilized().Backlog
		if b.Pending != 1 || b.Ready != 6 || len(b.Lanes) != 2 {
			t.Fatalf("%+v", b)
		}
		if first := b.Lanes[0]; first.Repo != "acme/api" || first.Depth != 3 || b.Lanes[1].Priority != 50 {
			t.Errorf("%+v", b)
		}
	})
}

// A key is hot by the sessions of runs under way, against the capacities that are known.
func TestKeyHeat(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		if got := y.utilized().Keys; len(got) != 0 {
			t.Errorf("%+v", got)
		}
		is := func(status Grade, n, d int64) {
			t.Helper()
			got := y.utilized().Keys
			if len(got) != 1 || got[0].Status != status || got[0].N != n || got[0].D != d || got[0].Provider != "anthropic" {
				t.Errorf("%+v, want %s, %d of %d", got, status, n, d)
			}
		}
		y.do(seed.AddKey, "one", "acme", "ok")
		y.do(seed.AddKey, "theirs", "rival", "ok")
		is(gradeNoData, 0, 0)
		y.do(seed.SetCapacity, "one", 2)
		is(gradeOK, 0, 2)
		for _, id := range []string{"a", "b"} {
			y.add(seed.Task{ID: id, Account: "acme", Repo: "web"},
				seed.Run{ID: "run-" + id, Account: "acme", Task: id, Repo: "web", Box: "box"},
				seed.Session{ID: "of-" + id, Account: "acme", Repo: "web", Run: new("run-" + id), Task: &id})
			y.do(seed.RunsOn, id, "run-"+id)
			y.do(seed.CallsAt, "of-"+id, "anthropic")
		}
		is(gradeBad, 2, 2)
		y.do(seed.SetCapacity, "one", 4)
		is(gradeOK, 2, 4)
		y.do(seed.AddKey, "two", "acme", "failing")
		is(gradeWarn, 2, 0)
		y.do(seed.CancelTask, "a")
		is(gradeWarn, 1, 0)
	})
}

// Each enabled repository is there, with pages or without; boxes that are offline or drain give
// no slots, and hold what they hold.
func TestFreshnessAndLoad(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.add(seed.Repo{ID: "off", Account: "acme", Disabled: true})
		newest := y.now().Add(-time.Hour)
		y.pages = map[string]PageAge{"web": {Pages: 10, Fresh: 5, Newest: newest}}
		y.boxes = []BoxLoad{
			{ID: "a", State: "enrolled", Presence: "online", Slots: 4, Active: 1},
			{ID: "b", State: "draining", Presence: "online", Slots: 4, Active: 2},
			{ID: "c", State: "enrolled", Presence: "offline", Slots: 4},
		}
		u := y.utilized()
		if u.Slots != 4 || u.Active != 3 || len(u.Boxes) != 3 || u.More || len(u.KB) != 2 {
			t.Fatalf("%+v", u)
		}
		api, web := u.KB[0], u.KB[1]
		if api.Repo != "acme/api" || api.Status != gradeNoData || api.Newest != nil {
			t.Errorf("%+v", api)
		}
		if web.Status != gradeWarn || web.N != 5 || web.D != 10 || !web.Newest.Equal(newest) {
			t.Errorf("%+v", web)
		}
		y.boxes = make([]BoxLoad, mostShown+1)
		if u := y.utilized(); !u.More || len(u.Boxes) != mostShown {
			t.Errorf("%d boxes, more is %v", len(u.Boxes), u.More)
		}
	})
}
