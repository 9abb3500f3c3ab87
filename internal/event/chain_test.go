package event_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
)

type link struct {
	Seq            int64
	PrevHash, Hash string
	Object         string
}

var links = db.Q[link](`SELECT seq, prev_hash, hash, object FROM audit WHERE account_id = $1 ORDER BY seq`)

// TestChain holds that the chains are whole after concurrent transactions that change
// several accounts in different orders.
func TestChain(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		accounts := []string{"a", "b", "c"}
		const writers, rounds = 8, 10
		undo := errors.New("undo")
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for r := range rounds {
					err := d.Write(t.Context(), func(tx *db.Tx) error {
						for i := range accounts {
							about := event.Subject{ID: fmt.Sprint(w, "/", r), Account: accounts[(w+i)%len(accounts)]}
							if err := undone.Record(tx, about, event.None{}); err != nil {
								return err
							}
						}
						if r%5 == 4 {
							return undo
						}
						return nil
					})
					if err != nil && !errors.Is(err, undo) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		for _, account := range accounts {
			var rows []link
			if err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
				rows, err = links.All(tx, account)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if want := writers * rounds * 4 / 5; len(rows) != want {
				t.Errorf("%s has %d rows, want %d", account, len(rows), want)
			}
			var before link
			for _, r := range rows {
				if r.Seq != before.Seq+1 || r.PrevHash != before.Hash || len(r.Hash) != 64 {
					t.Fatalf("%s: %+v after %+v", account, r, before)
				}
				before = r
			}
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	for _, e := range []db.Engine{db.SQLite, db.Postgres} {
		b.Run(e.String(), func(b *testing.B) {
			d, err := db.Open(b.Context(), dbtest.DSN(b, e), db.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := d.Write(b.Context(), func(tx *db.Tx) error {
						return done.Record(tx, event.Subject{ID: "x", Account: "a"}, doneData{N: 1})
					}); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
