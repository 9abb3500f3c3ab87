package queue

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/domain/task"
	"yardmaster/internal/proof/chance"
)

var selectPending = db.Q[task.Row](`SELECT ` + task.Columns +
	` FROM tasks WHERE account_id = $1 AND status = 'pending' ORDER BY created_at DESC, id DESC`)

// The places of many tasks are those that each has when it is asked about
// alone, whichever way they are told.
func TestPlacesOfManyAtOnce(t *testing.T) {
	t.Parallel()
	seed := chance.Seed(t)
	each(t, func(f *fixture) {
		dice := rand.New(rand.NewPCG(seed, 2))
		repos := []string{"web", "big", "old"}
		f.repo("big")
		f.repo("old")
		var ids []string
		for i := range 60 {
			in := object{"repo": "acme/" + repos[dice.IntN(3)], "priority": 50 - dice.IntN(2)}
			if i > 0 && dice.IntN(8) == 0 {
				in["depends_on"] = []string{ids[dice.IntN(i)]}
			}
			if ids = append(ids, f.create(in)); dice.IntN(3) > 0 { // some are made at one moment
				f.pass(time.Millisecond)
			}
		}
		f.served(5)
		f.write("acme", func(tx *db.Tx) error {
			lanes, err := lanesOf(tx, "acme")
			if err != nil {
				return err
			}
			q := lineOf(lanes)
			all, err := selectPending.All(tx, "acme")
			if err != nil {
				return err
			}
			want, taken := map[string]int64{}, map[int64]bool{}
			for i := range all {
				at, err := q.position(tx, &all[i])
				if err != nil {
					return err
				}
				if all[i].Ready() {
					if taken[at] {
						f.t.Errorf("two tasks have place %d", at)
					}
					taken[at] = true
				}
				want[all[i].ID] = at
			}
			check := func(how string, rows []task.Row, tell func([]task.Row, map[string]int64) error) {
				f.t.Helper()
				got := map[string]int64{}
				if err := tell(rows, got); err != nil {
					f.t.Fatalf("%s: %v", how, err)
				}
				some := maps.Clone(want)
				maps.DeleteFunc(some, func(id string, _ int64) bool {
					return !slices.ContainsFunc(rows, func(r task.Row) bool { return r.ID == id })
				})
				if !maps.Equal(got, some) {
					f.t.Fatalf("%s: %v, one by one they are at %v", how, got, some)
				}
			}
			of := func(newest bool) func([]task.Row, map[string]int64) error {
				return func(rows []task.Row, to map[string]int64) error {
					got, err := q.positions(tx, "acme", rows, newest)
					maps.Copy(to, got)
					return err
				}
			}
			for n := range len(all) {
				check(fmt.Sprintf("the newest %d", n+1), all[:n+1], of(true))
			}
			for range 40 {
				rows := slices.Clone(all)
				dice.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
				rows = rows[:1+dice.IntN(len(rows))]
				check("any", slices.Clone(rows), of(false))
				check("between", rows, func(rows []task.Row, to map[string]int64) error { return q.between(tx, "acme", rows, to) })
			}
			return nil
		})
		for _, query := range []string{"", "?filter=status:pending", "?per_page=7", "?filter=repo:acme/big", "?filter=kind:work"} {
			for _, row := range f.call("acme", "GET", "/v1/tasks"+query, nil, 200)["data"].([]any) {
				row := row.(object)
				if one := f.get(row["id"].(string))["queue_position"]; one != row["queue_position"] {
					f.t.Errorf("%s: %v is at %v in the list, at %v alone", query, row["id"], row["queue_position"], one)
				}
			}
		}
	})
}
