package db_test

import (
	"database/sql"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// BenchmarkWrite has 32 writers insert a row each: through Write, whose commits
// they share, and over database/sql with a commit for each.
func BenchmarkWrite(b *testing.B) {
	const writers = 32
	b.Run("group", func(b *testing.B) {
		d := dbtest.SQLite(b)
		createTables(b, d)
		var next atomic.Int64
		b.SetParallelism(writers)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				id := fmt.Sprint(next.Add(1))
				if err := d.Write(b.Context(), func(tx *db.Tx) error { return put(tx, thing{ID: id}) }); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("each", func(b *testing.B) {
		pool := bare(b, "_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
		pool.SetMaxOpenConns(1)
		insert, err := pool.Prepare(`INSERT INTO thing (` + thingColumns + `)
			VALUES ($1, NULL, '', 0, 0, FALSE, NULL, NULL, '{}', NULL, 0, NULL)`)
		if err != nil {
			b.Fatal(err)
		}
		defer insert.Close()
		var next atomic.Int64
		b.SetParallelism(writers)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				tx, err := pool.Begin()
				if err == nil {
					_, err = tx.Stmt(insert).Exec(fmt.Sprint(next.Add(1)))
				}
				if err == nil {
					err = tx.Commit()
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	})
}

type entry struct {
	ID        string
	Status    string
	Size      int64
	Done      bool
	CreatedAt int64
}

var listEntries = db.Q[entry](`SELECT id, status, size, done, created_at FROM thing WHERE status = $1 ORDER BY id LIMIT $2`)

// BenchmarkList reads a page of 50 rows: with a declared query in a Read, with a
// built one, and over database/sql with a prepared statement scanned by hand.
func BenchmarkList(b *testing.B) {
	b.Run("declared", func(b *testing.B) {
		d := filled(b)
		for b.Loop() {
			if rows := read(b, d, func(tx *db.Tx) ([]entry, error) { return listEntries.All(tx, "open", 50) }); len(rows) != 50 {
				b.Fatal(len(rows))
			}
		}
	})
	b.Run("built", func(b *testing.B) {
		d := filled(b)
		for b.Loop() {
			rows := read(b, d, func(tx *db.Tx) ([]entry, error) {
				return db.Select[entry](tx, db.Build(`SELECT id, status, size, done, created_at FROM thing WHERE status = `, "open").
					SQL(" ORDER BY id LIMIT ", 50))
			})
			if len(rows) != 50 {
				b.Fatal(len(rows))
			}
		}
	})
	b.Run("bare", func(b *testing.B) {
		pool := bare(b, "_query_only=1")
		list, err := pool.Prepare(`SELECT id, status, size, done, created_at FROM thing WHERE status = $1 ORDER BY id LIMIT $2`)
		if err != nil {
			b.Fatal(err)
		}
		defer list.Close()
		for b.Loop() {
			rows, err := list.QueryContext(b.Context(), "open", 50)
			if err != nil {
				b.Fatal(err)
			}
			var out []entry
			for rows.Next() {
				var e entry
				if err := rows.Scan(&e.ID, &e.Status, &e.Size, &e.Done, &e.CreatedAt); err != nil {
					b.Fatal(err)
				}
				out = append(out, e)
			}
			if err := rows.Close(); err != nil || len(out) != 50 {
				b.Fatal(err, len(out))
			}
		}
	})
}

func filled(b *testing.B) *db.DB {
	d := dbtest.SQLite(b)
	fill(b, d)
	return d
}

func fill(b *testing.B, d *db.DB) {
	createTables(b, d)
	write(b, d, func(tx *db.Tx) error {
		for i := range 200 {
			if err := put(tx, thing{ID: fmt.Sprintf("%036d", i), Status: "open", CreatedAt: epoch}); err != nil {
				return err
			}
		}
		return nil
	})
}

// bare opens a filled database without this package.
func bare(b *testing.B, query string) *sql.DB {
	b.Helper()
	dsn := dbtest.DSN(b, db.SQLite)
	fill(b, dbtest.Open(b, dsn, db.Options{}))
	pool, err := sql.Open("sqlite", "file:"+strings.TrimPrefix(dsn, "sqlite:")+"?"+query)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { pool.Close() })
	return pool
}
