package event_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
)

type kept struct {
	Seq            int64
	Kind, Data     string
	PrevHash, Hash string
}

var (
	keptOf  = db.Q[kept](`SELECT seq, kind, data, prev_hash, hash FROM audit WHERE account_id = $1 ORDER BY seq`)
	oursAre = db.Q[kept](`SELECT seq, kind, data, prev_hash, hash FROM audit WHERE account_id IS NULL ORDER BY seq`)
	takeOut = db.S(`DELETE FROM audit WHERE account_id = $1 AND seq <= $2 + 0`)
	pretend = db.S(`UPDATE audit_heads SET cut_seq = seq - 1, cut_hash = (SELECT prev_hash FROM audit a
		WHERE a.account_id = audit_heads.account_id AND a.seq = audit_heads.seq), cut_told = seq WHERE account_id = $1`)
)

// TestReap holds that rows go once they are older than they are kept, that what is left of a chain is
// whole and says what went, and that a chain that somebody else has cut does not pass for one.
func TestReap(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return now }}, func(t *testing.T, d *db.DB) {
		day := func(n int) { now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, n) }
		write := func(fn func(tx *db.Tx) error) {
			t.Helper()
			if err := d.Write(t.Context(), fn); err != nil {
				t.Fatal(err)
			}
		}
		record := func(accounts ...string) {
			t.Helper()
			for _, a := range accounts {
				write(func(tx *db.Tx) error { return undone.Record(tx, event.Subject{ID: "x", Account: a}, event.None{}) })
			}
		}
		r := &event.Reaper{DB: d, Logger: slog.New(slog.DiscardHandler), Keep: 10 * 24 * time.Hour}
		pass := func() {
			t.Helper()
			if err := r.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		rows := func(account string) (out []kept, old int64, wrong []string) {
			t.Helper()
			write(func(tx *db.Tx) (err error) {
				if out, err = keptOf.All(tx, account); account == "" {
					out, err = oursAre.All(tx)
				}
				if err == nil {
					old, err = event.Old(tx, now.Add(-r.Keep))
				}
				if err == nil {
					_, wrong, err = event.Proofread(tx)
				}
				return err
			})
			return out, old, wrong
		}
		day(0)
		record("a", "a", "b", "")
		day(3)
		record("a")
		day(10)
		pass()
		if a, old, wrong := rows("a"); len(a) != 3 || old != 0 || len(wrong) > 0 {
			t.Fatalf("too early: %d rows, %d old, %q", len(a), old, wrong)
		}
		day(12)
		if _, old, _ := rows("a"); old != 4 {
			t.Errorf("%d rows are said to go, want 4", old)
		}
		pass()
		pass() // there is nothing left to do
		a, old, wrong := rows("a")
		if len(a) != 2 || a[0].Seq != 3 || a[1].Kind != "audit.reaped" || old != 0 ||
			len(wrong) > 0 {
			t.Fatalf("what is left: %+v, %d old, %q", a, old, wrong)
		}
		var said event.ReapedData
		if err := json.Unmarshal([]byte(a[1].Data), &said); err != nil || said.Rows != 2 || said.Through != 2 ||
			said.Hash != a[0].PrevHash {
			t.Errorf("it says %+v, %v", said, err)
		}
		for _, account := range []string{"b", ""} {
			if left, _, _ := rows(account); len(left) != 1 || left[0].Seq != 2 || left[0].Kind != "audit.reaped" {
				t.Errorf("of %q is left %+v", account, left)
			}
		}
		// More than one transaction removes.
		write(func(tx *db.Tx) error {
			for range 2500 {
				if err := undone.Record(tx, event.Subject{ID: "x", Account: "many"}, event.None{}); err != nil {
					return err
				}
			}
			return nil
		})
		day(40)
		pass()
		if many, _, wrong := rows("many"); len(many) != 2 || many[0].Seq != 2501 || many[1].Seq != 2502 || len(wrong) > 0 {
			t.Fatalf("of many is left %+v, %q", many, wrong)
		}
		// The row that said so before has gone, too; the chain says it again.
		if a, _, wrong = rows("a"); len(a) != 1 || a[0].Kind != "audit.reaped" || len(wrong) > 0 {
			t.Errorf("at last: %+v, %q", a, wrong)
		}
		record("a", "a", "a")
		last, _, _ := rows("a")
		write(func(tx *db.Tx) error {
			_, err := takeOut.Exec(tx, "a", last[len(last)-1].Seq-1)
			if err == nil {
				_, err = pretend.Exec(tx, "a")
			}
			return err
		})
		want := fmt.Sprintf("up to number %d are gone", last[len(last)-2].Seq)
		if _, _, wrong = rows("a"); len(wrong) != 1 || !strings.Contains(wrong[0], want) {
			t.Errorf("a chain that was cut by hand: %q", wrong)
		}
	})
}
