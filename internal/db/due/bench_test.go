package due

import (
	"context"
	"fmt"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

var (
	insertColumned = db.S(`INSERT INTO columned (id, state, due_at) VALUES ($1, 'due', $2)`)
	anyColumned    = db.Q[bool](`SELECT EXISTS (SELECT 1 FROM columned WHERE due_at <= $1)`)
	takeColumned   = db.Q[string](`UPDATE columned SET due_at = $2, tries = tries + 1
		WHERE id IN (SELECT id FROM columned WHERE due_at <= $1 ORDER BY due_at, id LIMIT $3) AND due_at <= $1 RETURNING id`)
	endColumned = db.S(`UPDATE columned SET state = 'done', due_at = NULL WHERE id = $1 AND due_at IS NOT NULL`)
)

// BenchmarkShort carries out jobs that only change their row, eight at a time, by the kernel
// and by db.Drain over columns of the row, in turns, and tells the ratio of their times.
func BenchmarkShort(b *testing.B) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		b.Run(e.String(), func(b *testing.B) {
			const jobs = 1000
			d := dbtest.Open(b, database(b, e), db.Options{})
			n := start(b, d, "a", Queue[job]{Share: 8, Work: func(_ context.Context, j Job[job]) Outcome {
				return Done(func(tx *db.Tx) error { _, err := endJob.Exec(tx, j.Key, "done"); return err })
			}})
			var kernel, drain time.Duration
			for round := range b.N {
				must(b, d, func(tx *db.Tx) error {
					for i := range jobs {
						if err := n.add(tx, fmt.Sprint(round, "-", i), "acme", Entry{Account: "acme"}); err != nil {
							return err
						}
						if _, err := insertColumned.Exec(tx, fmt.Sprint(round, "-", i), tx.Micros()); err != nil {
							return err
						}
					}
					return nil
				})
				byKernel := func() {
					begun := time.Now()
					if err := n.Drain(b.Context()); err != nil {
						b.Fatal(err)
					}
					kernel += time.Since(begun)
				}
				byDrain := func() {
					begun := time.Now()
					err := db.Drain(b.Context(), d, anyColumned, func(tx *db.Tx) ([]string, error) {
						return takeColumned.All(tx, tx.Micros(), db.Micros(tx.Now.Add(time.Minute)), 8)
					}, func(id string) {
						err := d.Write(b.Context(), func(tx *db.Tx) error { _, err := endColumned.Exec(tx, id); return err })
						if err != nil {
							b.Error(err)
						}
					})
					if err != nil {
						b.Fatal(err)
					}
					drain += time.Since(begun)
				}
				if round%2 == 0 {
					byKernel()
					byDrain()
				} else {
					byDrain()
					byKernel()
				}
			}
			if left := count(b, d, entries); left != 0 {
				b.Errorf("%d are left", left)
			}
			b.ReportMetric(float64(jobs*b.N)/kernel.Seconds(), "kernel/s")
			b.ReportMetric(float64(jobs*b.N)/drain.Seconds(), "drain/s")
			b.ReportMetric(float64(kernel)/float64(drain), "kernel:drain")
		})
	}
}
