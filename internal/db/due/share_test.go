package due

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// Nodes at once work on each entry once.
func TestNodesAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		const jobs, nodes = 300, 3
		var worked atomic.Int64
		d := dbtest.Open(t, dsn, db.Options{})
		for i := range nodes {
			name := fmt.Sprint("node", i)
			n := start(t, d, name, Queue[job]{Work: func(_ context.Context, j Job[job]) Outcome {
				worked.Add(1)
				return Done(finished(name, j.Key))
			}})
			if i == 0 {
				must(t, d, func(tx *db.Tx) error {
					for k := range jobs {
						account := fmt.Sprint("account", k%5)
						if err := n.add(tx, fmt.Sprint(k), account, Entry{Account: account}); err != nil {
							return err
						}
					}
					return nil
				})
			}
			n.run(t)
		}
		soon(t, "all jobs", func() bool { return count(t, d, records) == jobs })
		if n := worked.Load(); n != jobs {
			t.Errorf("worked %d times on %d jobs", n, jobs)
		}
	})
}

// The key of a line serves what waits in it, in turn and one at a time, however many add to
// it at the same time.
func TestLine(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		d := dbtest.Open(t, dsn, db.Options{})
		head := func(tx *db.Tx, line string) (job, bool, error) { return headOf.Maybe(tx, line) }
		var at atomic.Int64
		work := func(_ context.Context, j Job[job]) Outcome {
			if at.Add(1) > 1 {
				t.Error("two of one line at once")
			}
			defer at.Add(-1)
			return Next(func(tx *db.Tx) (bool, error) {
				if err := finished("a", j.Row.ID)(tx); err != nil {
					return false, err
				}
				_, more, err := head(tx, j.Key)
				return more, err
			})
		}
		n := start(t, d, "a", Queue[job]{Load: head, Work: work}).run(t)
		start(t, d, "b", Queue[job]{Load: head, Work: work}).run(t)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for k := range 25 {
					must(t, d, func(tx *db.Tx) error {
						_, err := insertHead.Exec(tx, fmt.Sprintf("%d-%d", k, i), "pr/1")
						n.jobs.Add(tx, "pr/1", Entry{Account: "acme"})
						return err
					})
				}
			})
		}
		all.Wait()
		soon(t, "the line", func() bool { return count(t, d, records) == 200 })
		soon(t, "its entry", func() bool { return count(t, d, entries) == 0 })
	})
}

// An account that floods a queue leaves room for others at once, and gets all but one place
// while there is nobody else.
func TestFairShare(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		var mu sync.Mutex
		in, most := map[string]int{}, 0
		leave := make(chan bool)
		n := start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{AtOnce: 4, Work: func(_ context.Context, j Job[job]) Outcome {
			mu.Lock()
			in[j.Account]++
			most = max(most, in["flood"]+in["small"]+in["tiny"])
			mu.Unlock()
			<-leave
			mu.Lock()
			in[j.Account]--
			mu.Unlock()
			return Done(finished("a", j.Key))
		}})
		n.run(t)
		t.Cleanup(func() { close(leave) })
		must(t, n.DB, func(tx *db.Tx) error {
			for i := range 200 {
				if err := n.add(tx, fmt.Sprint("f", i), "flood", Entry{Account: "flood"}); err != nil {
					return err
				}
			}
			return nil
		})
		inWork := func(account string, want int) func() bool {
			return func() bool { mu.Lock(); defer mu.Unlock(); return in[account] == want }
		}
		soon(t, "three of the flood", inWork("flood", 3))
		n.put(t, "s1", "small")
		n.put(t, "s2", "small")
		soon(t, "one of the small", inWork("small", 1))
		leave <- true // whoever it is: the next place is shared out
		leave <- true
		soon(t, "four at once", func() bool { mu.Lock(); defer mu.Unlock(); return in["flood"]+in["small"] == 4 })
		for i := range 10 { // ten accounts with one job each come before the flood's next, but for eight that are claimed ahead
			n.put(t, fmt.Sprint("t", i), fmt.Sprint("tiny", i))
		}
		for range 24 + 8 {
			leave <- true
		}
		// The last of them are about to be written down; none that comes later may leave.
		soon(t, "nine of the ten small accounts are served by 32 jobs", func() bool { return count(t, n.DB, tinyOnes) >= 9 })
		mu.Lock()
		defer mu.Unlock()
		if most > 4 {
			t.Errorf("%d at once", most)
		}
	})
}

// Lower ranks come first, whose ever they are.
func TestRank(t *testing.T) {
	onBoth(t, func(t *testing.T, dsn string) {
		var mu sync.Mutex
		var order []string
		n := start(t, dbtest.Open(t, dsn, db.Options{}), "a", Queue[job]{AtOnce: 1, Work: func(_ context.Context, j Job[job]) Outcome {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, j.Key)
			return Done(nil)
		}})
		must(t, n.DB, func(tx *db.Tx) error {
			for _, k := range rand.Perm(4) {
				for _, account := range []string{"acme", "zeta"} {
					if err := n.add(tx, fmt.Sprint(k, account), account, Entry{Account: account, Rank: k}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		n.run(t)
		soon(t, "all", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == 8 })
		for i, k := range order {
			if k[0] != byte('0'+i/2) {
				t.Fatalf("%q", order)
			}
		}
	})
}

// Adding and finishing at the same time never deadlock, although both write the domain's rows.
func TestNoDeadlock(t *testing.T) {
	var repeated atomic.Int64
	d := dbtest.Open(t, database(t, db.Postgres), db.Options{Observe: func(_ context.Context, x db.Transaction) {
		if x.Tries > 1 {
			repeated.Add(1)
		}
	}})
	n := start(t, d, "a", Queue[job]{Work: func(_ context.Context, j Job[job]) Outcome {
		return Done(func(tx *db.Tx) error {
			_, err := lengthen.Exec(tx, j.Key)
			return err
		})
	}})
	keys := []string{"a", "b", "c", "d"}
	for _, k := range keys {
		n.put(t, k, "acme")
	}
	n.run(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 100 {
				must(t, d, func(tx *db.Tx) error {
					for _, i := range rand.Perm(len(keys)) {
						n.jobs.Add(tx, keys[i], Entry{Account: "acme"}) // in any order, before the rows
					}
					for _, k := range keys {
						if _, err := lengthen.Exec(tx, k); err != nil {
							return err
						}
					}
					return nil
				})
			}
		})
	}
	all.Wait()
	soon(t, "all", func() bool { return count(t, d, entries) == 0 })
	if n := repeated.Load(); n > 0 {
		t.Errorf("%d transactions were made again", n)
	}
}
