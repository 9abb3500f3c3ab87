package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	_ "yardmaster/internal/proof/chance" // seeds rapid
	"yardmaster/internal/proof/seed"
)

var (
	// wrongLanes are the lanes whose count is not that of their ready tasks.
	wrongLanes = db.Q[lane](`SELECT ` + laneColumns + ` FROM queue_lanes l WHERE l.ready <> (SELECT COUNT(*) FROM tasks t
		WHERE t.account_id = l.account_id AND t.repo_id = l.repo_id AND t.template = l.template AND t.priority = l.priority
		AND t.status = 'pending' AND t.waiting_deps = 0 AND t.not_before = 0 AND t.conflict_with IS NULL)`)
	countReady = db.Q[int64](`SELECT COUNT(*) FROM tasks WHERE account_id = $1 AND ` + task.IsReady)
)

// lanesAgree holds the lanes against the tasks.
func (f *fixture) lanesAgree(account string) {
	f.t.Helper()
	f.write(account, func(tx *db.Tx) error {
		wrong, err := wrongLanes.All(tx)
		if err != nil || len(wrong) > 0 {
			f.t.Fatalf("lanes that count wrongly: %+v %v", wrong, err)
		}
		n, err := countReady.One(tx, account)
		if err != nil {
			return err
		}
		lanes, err := selectAllLanes.All(tx, account)
		for _, l := range lanes {
			n -= l.Ready
		}
		if n != 0 {
			f.t.Fatalf("%d ready tasks are in no lane", n)
		}
		return err
	})
}

func (f *fixture) repo(name string) {
	f.write("acme", func(tx *db.Tx) error {
		err := seed.Add(tx, seed.Repo{ID: name, Account: "acme", Owner: "acme", Name: name})
		return err
	})
}

// served claims n tasks and names the repositories they are of.
func (f *fixture) served(n int) string {
	f.t.Helper()
	var got []string
	for range n {
		id := f.claim()
		if id == "" {
			break
		}
		got = append(got, strings.TrimPrefix(f.get(id)["repo"].(string), "acme/"))
	}
	return strings.Join(got, " ")
}

// However much one repository has queued, another gets every other turn; a
// direct task goes first.
func TestRepositoriesTakeTurns(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.seats = 1000
		f.write("", func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Box{ID: "large", Account: "acme", Slots: 1000})
			return err
		})
		f.write("", func(tx *db.Tx) error { _, err := seed.SetState.Exec(tx, "box", "draining"); return err })
		f.box = "large"
		f.repo("big")
		for range 30 {
			f.create(object{"repo": "acme/big"})
		}
		if got := f.served(4); got != "big big big big" {
			f.t.Fatalf("alone: %s", got)
		}
		for range 3 {
			f.create(nil)
		}
		f.pass(time.Second)
		last := f.create(object{"repo": "acme/big"})
		if at := f.get(last)["queue_position"]; at != 30.0 {
			f.t.Errorf("the last is at %v of 30", at)
		}
		if got := f.served(6); strings.Count(got, "web") != 3 {
			f.t.Errorf("with another: %s", got)
		}
		f.create(object{"sink": "direct"})
		if got := f.served(2); got != "web big" {
			f.t.Errorf("a direct task: %s", got)
		}
		// Priority is credit, not a licence: ten points are a turn.
		for range 20 {
			f.create(object{"priority": 100})
		}
		got := f.served(14)
		if !strings.HasPrefix(got, "web web web web web") || strings.Count(got, "big") < 4 {
			f.t.Errorf("with a priority of 100 against 50: %s", got)
		}
		f.lanesAgree("acme")
	})
}

func TestPositions(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.repo("big")
		var ids []string
		for i := range 9 {
			ids = append(ids, f.create(object{"repo": []string{"acme/big", "acme/web"}[i/6], "priority": 50 - i%2}))
		}
		f.write("", func(tx *db.Tx) error { _, err := seed.SetPresence.Exec(tx, "box", "offline"); return err })
		for _, st := range f.call("acme", "GET", "/v1/queue/status", nil, 200)["data"].([]any) {
			if st := st.(object); st["count"] != 9.0 || len(st["task_ids"].([]any)) != stallExamples {
				f.t.Errorf("queue status %v", st)
			}
		}
		want := map[string]float64{}
		f.seats = 100
		f.write("", func(tx *db.Tx) error {
			err := seed.Add(tx, seed.Box{ID: "large", Account: "acme", Slots: 100})
			return err
		})
		for _, id := range ids {
			want[id] = f.get(id)["queue_position"].(float64)
		}
		f.box = "large"
		for i := range 9 {
			id := f.claim()
			// Where two repositories are equal, either may be first.
			if d := want[id] - float64(i+1); d < -1 || d > 1 {
				f.t.Errorf("claimed as number %d, was promised %v", i+1, want[id])
			}
		}
	})
}

// A task is told its place when it is created: behind the tasks of others that wait as long
// or longer, and of a repository that had more turns than the others, behind more of them.
func TestPlaceOfANewTask(t *testing.T) {
	t.Parallel()
	each(t, func(f *fixture) {
		f.seats = 1000
		f.write("", func(tx *db.Tx) error {
			return seed.Add(tx, seed.Box{ID: "large", Account: "acme", Slots: 1000})
		})
		f.write("", func(tx *db.Tx) error { _, err := seed.SetState.Exec(tx, "box", "draining"); return err })
		f.box = "large"
		f.repo("big")
		promised := func(in object) (string, float64) {
			f.t.Helper()
			f.pass(time.Millisecond)
			row := f.call("acme", "POST", "/v1/tasks", job(in), 202)
			return row["task_id"].(string), row["queue_position"].(float64)
		}
		claimed := func(id string) (n float64) {
			f.t.Helper()
			for n = 1; ; n++ {
				switch f.claim() {
				case id:
					return n
				case "":
					f.t.Fatal("it is not claimed")
				}
			}
		}
		turns := func(in object, others int, other object) {
			f.t.Helper()
			for range others {
				f.pass(time.Millisecond)
				f.create(other)
			}
			id, at := promised(in)
			if n := claimed(id); n != at {
				f.t.Errorf("%v after %d of %v: promised %v, claimed as number %v", in, others, other, at, n)
			}
			for f.claim() != "" {
			}
		}
		web, big := object{"repo": "acme/web"}, object{"repo": "acme/big"}
		turns(web, 0, big)
		turns(web, 1, big)
		turns(big, 3, web)
		for range 4 { // web has more turns than big, which waits
			f.create(web)
		}
		f.create(object{"repo": "acme/big", "priority": 0})
		f.served(4)
		turns(web, 3, big)
		turns(object{"repo": "acme/web", "priority": 60}, 2, big)
		turns(object{"repo": "acme/big", "priority": 40}, 5, web)
	})
}

// No repository waits long for its turn, whatever the others queue and
// whatever it costs.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const repos = 4
		lanes := map[string]*lane{}
		clock := int64(-task.DefaultPriority)
		waits := map[string]int{}
		for range 300 {
			r := fmt.Sprint("r", rapid.IntRange(0, repos-1).Draw(t, "repo"))
			p := rapid.SampledFrom([]int64{0, 20, 50, 100}).Draw(t, "priority")
			key := fmt.Sprint(r, p)
			if lanes[key] == nil {
				lanes[key] = &lane{Lane: task.Lane{RepoID: r, Priority: p}}
			}
			l := lanes[key]
			if l.Ready++; l.Ready == 1 {
				spent := clock + task.DefaultPriority
				for _, o := range lanes {
					if o.RepoID == r && o != l {
						spent = max(spent, o.Place+o.Priority)
					}
				}
				l.Place = max(l.Place, spent-p)
			}
			if !rapid.Bool().Draw(t, "claim") {
				continue
			}
			var next *lane
			waiting := map[string]bool{}
			for _, o := range lanes {
				if o.Ready > 0 {
					waiting[o.RepoID] = true
					if next == nil || o.Place < next.Place {
						next = o
					}
				}
			}
			next.Ready--
			var spent int64
			clock, spent = turn{next.Place, clock}.served(next.Priority)
			for _, o := range lanes {
				if o.RepoID == next.RepoID {
					o.Place = max(o.Place+o.Priority, spent) - o.Priority
				}
			}
			for r := range waiting {
				if waits[r]++; waits[r] > 60 {
					t.Fatalf("%s has waited for %d turns", r, waits[r])
				}
			}
			delete(waiting, next.RepoID)
			waits[next.RepoID] = 0
		}
	})
}
