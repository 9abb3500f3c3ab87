package plan

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/chance"
)

// hikes returns how many random plans are worked through, each in up to 40
// moves. YARDMASTER_HIKES asks for more.
func hikes(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("YARDMASTER_HIKES"))
	if err != nil {
		return 6
	}
	return n
}

// hike is a plan that random moves change, and the state that must be true of
// it.
type hike struct {
	*fixture
	*rand.Rand
	t       *testing.T
	plan    string
	revived map[string]bool // tasks that an answer named as revived, since they last failed
}

// TestRandomPlans holds that in every plan nothing ever waits for itself, a
// task waits for exactly the tasks of the groups before its own, no task is
// released before those have merged, and a task that failed because of another
// is revived once, when the last cause is gone.
func TestRandomPlans(t *testing.T) {
	t.Parallel()
	seed := chance.Seed(t)
	for i := range hikes(t) {
		e := db.SQLite
		if i%6 == 5 {
			e = db.Postgres
		}
		t.Run(fmt.Sprintf("%d-%s", i, e), func(t *testing.T) {
			h := &hike{fixture: newFixture(t, e), Rand: rand.New(rand.NewPCG(seed, uint64(i))), t: t, revived: map[string]bool{}}
			var up [][]int
			for j := range 3 + h.IntN(8) {
				var list []int
				for k := range j {
					if h.IntN(3) == 0 {
						list = append(list, k)
					}
				}
				up = append(up, list)
			}
			h.plan = h.draw(false, up...)
			h.check("it was dispatched")
			for range 40 {
				if what := h.move(); what != "" {
					h.check(what)
				}
			}
		})
	}
}

func pick[T any](h *hike, list []T) T { return list[h.IntN(len(list))] }

// move does one random thing to the plan, and names it.
func (h *hike) move() string {
	p := h.fixture.plan(h.plan)
	g := pick(h, p.Groups)
	id := g.Tasks[0].ID
	t := h.task(id)
	switch h.IntN(6) {
	case 0, 1:
		if g.Status == Ready {
			h.merge(id)
			return "merged " + g.Slug
		}
	case 2:
		if t.Status == task.Pending || t.Status == task.Running {
			h.fail(id)
			delete(h.revived, id)
			return "failed " + g.Slug
		}
	case 3:
		if p.Status == Done || p.Status == Cancelled || g.Status == Done || g.Status == Superseded {
			return ""
		}
		tasks := []string{h.newTask()}
		if h.IntN(2) == 0 {
			tasks = append(tasks, h.newTask(tasks[0]))
		}
		if h.IntN(3) == 0 { // one that waits for something of the plan by itself
			if other := pick(h, p.Groups); other.Status == Ready || other.Status == Waiting {
				tasks = append(tasks, h.newTask(other.Tasks[0].ID))
			}
		}
		old := []string{g.ID}
		if h.IntN(3) == 0 {
			if other := pick(h, p.Groups); other.ID != g.ID && other.Status != Done && other.Status != Superseded {
				old = append(old, other.ID)
			}
		}
		h.regroup(old, tasks)
		return fmt.Sprintf("regrouped %s", g.Slug)
	case 4:
		for _, e := range g.Upstream {
			if e.Kind == OrderingOnly && (p.Status == Running || p.Status == Failed) && (g.Status == Ready || g.Status == Waiting) {
				a := h.call("POST", "/v1/plans/"+h.plan+"/unlink", object{"group_id": g.ID, "upstream_group_ids": []string{e.GroupID},
					"reason": "By chance."}, 200)
				h.learn(texts(a["revived"]))
				return "unlinked " + g.Slug
			}
		}
	case 5:
		if t.Status == task.Pending && t.WaitingDeps == 0 {
			h.run(id)
			return "began " + g.Slug
		}
		if t.Status == task.Running {
			h.change(id, h.Tasks.Complete)
			return "ended " + g.Slug
		}
	}
	return ""
}

// regroup tries a replacement, which may be refused for a known reason.
func (h *hike) regroup(old, tasks []string) {
	h.fixture.t = silent{h.t}
	a := h.call("POST", "/v1/plans/"+h.plan+"/regroup", object{"group_ids": old, "task_ids": tasks}, 200)
	h.fixture.t = h.t
	if a["plan_id"] == nil {
		if reason, _ := a["reason"].(string); reason != "would-cycle" && reason != "upstream-failed" {
			h.t.Fatalf("refused: %v", a)
		}
		return
	}
	if n := len(a["groups"].([]any)); n != len(tasks) {
		h.t.Fatalf("%d groups for %d tasks", n, len(tasks))
	}
	h.learn(texts(a["revived"]))
}

// learn notes the tasks that were revived. No task is revived twice without
// failing in between.
func (h *hike) learn(ids []string) {
	for i, id := range ids {
		if slices.Contains(ids[:i], id) {
			h.t.Fatalf("%s is revived twice in one answer", id)
		}
	}
}

// silent is a test that an unwanted status does not fail.
type silent struct{ *testing.T }

func (silent) Errorf(string, ...any) {}

// check holds the rules that are true of every plan.
func (h *hike) check(after string) {
	h.t.Helper()
	p := h.fixture.plan(h.plan)
	group := map[string]Group{}
	up := map[string][]string{}
	for _, g := range p.Groups {
		group[g.ID] = g
		for _, e := range g.Upstream {
			up[g.ID] = append(up[g.ID], e.GroupID)
		}
	}
	if found := cycle(up); found != nil {
		h.t.Fatalf("after %s, groups wait for themselves: %v", after, found)
	}
	deps := map[string][]string{}
	var walk func(id string)
	walk = func(id string) {
		if _, seen := deps[id]; seen {
			return
		}
		deps[id] = h.dependencies(id)
		for _, d := range deps[id] {
			walk(d)
		}
	}
	for _, g := range p.Groups {
		t := h.task(g.Tasks[0].ID)
		walk(t.ID)
		var waits int64
		lost := false
		for _, d := range deps[t.ID] {
			switch h.task(d).Status {
			case task.Merged, task.Completed:
				continue
			case task.Failed, task.Cancelled:
				lost = true
			}
			waits++
		}
		if t.Status == task.Pending && (t.WaitingDeps != waits || lost) {
			h.t.Fatalf("after %s, %s says it waits for %d, and waits for %d (lost: %v)", after, g.Slug, t.WaitingDeps, waits, lost)
		}
		if t.Status == task.Failed && *t.FailureKind == task.DependencyFailed && !lost && g.Status != Superseded {
			h.t.Fatalf("after %s, %s is dead of nothing", after, g.Slug)
		}
		if g.Status == Superseded {
			continue
		}
		for _, d := range deps[t.ID] {
			// Tasks that came from outside the plan may wait for more.
			if t.Title != "Another" && !slices.ContainsFunc(up[g.ID], func(u string) bool { return group[u].Tasks[0].ID == d }) {
				h.t.Fatalf("after %s, the task of %s waits for %s, which its group does not", after, g.Slug, d)
			}
		}
		for _, u := range up[g.ID] {
			if group[u].Status == Superseded {
				h.t.Fatalf("after %s, %s waits for a group that was replaced", after, g.Slug)
			}
			if !slices.Contains(deps[t.ID], group[u].Tasks[0].ID) && (t.Status == task.Pending || t.Status == task.Failed) {
				h.t.Fatalf("after %s, the task of %s does not wait for that of %s", after, g.Slug, group[u].Slug)
			}
		}
	}
	if found := cycle(deps); found != nil {
		h.t.Fatalf("after %s, tasks wait for themselves: %v", after, found)
	}
	var total, merged int64
	for _, g := range p.Groups {
		if g.Status != Superseded {
			total++
		}
		if g.Status == Done {
			merged++
		}
	}
	if p.Total != total || p.Merged != merged {
		h.t.Fatalf("after %s, %d of %d are kept, and %d of %d are so", after, p.Merged, p.Total, merged, total)
	}
}

var selectDeps = db.Q[string](`SELECT depends_on FROM task_deps WHERE task_id = $1 ORDER BY depends_on`)

func (h *hike) dependencies(id string) (ids []string) {
	h.write(func(tx *db.Tx) (err error) {
		ids, err = selectDeps.All(tx, id)
		return err
	})
	return ids
}

func TestCycle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		up   map[string][]string
		want []string
	}{
		{nil, nil}, {map[string][]string{"a": {"b"}, "b": {"c"}}, nil}, {map[string][]string{"a": {"a"}}, []string{"a", "a"}},
		{map[string][]string{"a": {"b"}, "b": {"c", "d"}, "d": {"b"}}, []string{"b", "d", "b"}},
	} {
		if got := cycle(c.up); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.up, got, c.want)
		}
	}
}
