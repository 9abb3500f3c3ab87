package notary

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
	"yardmaster/internal/seal"
)

var takeOut = db.S(`DELETE FROM audit WHERE account_id = $1 AND seq <= $2 + 0`)

var pretend = db.S(`UPDATE audit_heads SET cut_seq = $2 + 0, cut_hash = 'x', cut_told = seq WHERE account_id = $1`)

// TestReaped holds that rows that went with their time are not missed, whatever was noted of them, and
// that rows which somebody else has taken out are.
func TestReaped(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return now }}, func(t *testing.T, d *db.DB) {
		o := &office{t: t, d: d, ring: seal.New(), path: filepath.Join(t.TempDir(), "heads.jsonl")}
		o.record("a", "a", "a", "b", "", "", "c", "c", "c")
		o.sound() // the newest rows are noted
		now = now.Add(20 * 24 * time.Hour)
		o.record("b")
		r := &event.Reaper{DB: d, Logger: slog.New(slog.DiscardHandler), Keep: 10 * 24 * time.Hour}
		if err := r.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.sound()
		o.sound()
		now = now.Add(20 * 24 * time.Hour)
		if err := r.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		o.sound()
		o.record("c", "c")
		o.sound()
		o.exec(takeOut, "c", 6)
		o.exec(pretend, "c", 6)
		o.broken("c", 7, "rows up to number 6 are gone, and the record does not say so")
	})
}
