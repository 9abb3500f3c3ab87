package clock

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/mail"
	"yardmaster/internal/proof/chaos/astray"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func TestStatements(t *testing.T) { dbtest.Declared(t) }

func TestWatch(t *testing.T) {
	if !astray.Possible {
		return // this test cannot set the clock
	}
	defer astray.Set(0)
	var w Watch
	for _, ahead := range []time.Duration{time.Hour, 0, -time.Hour, -time.Hour, 0} {
		if by := w.Set(); by != 0 {
			t.Errorf("the clock was set by %s, says the watch, and was not", by)
		}
		before := time.Now().Round(0)
		astray.Set(ahead)
		want := time.Now().Round(0).Sub(before)
		if want.Abs() < time.Minute {
			want = 0
		}
		if by := w.Set(); (by - want).Abs() > time.Minute {
			t.Errorf("the clock was set by %s, says the watch, and it was %s", by, want)
		}
	}
}

var (
	addMail = db.S(`INSERT INTO mails (id, recipient, subject, sealed, state, due_at, created_at) VALUES ($1, '', '', '', 'due', $2, 0)`)
	mailDue = db.Q[int64](`SELECT due_at FROM mails WHERE id = $1`)
)

func TestWaitsEndAfterTheClockIsSetBack(t *testing.T) {
	var now atomic.Int64
	now.Store(time.Unix(1_800_000_000, 0).UnixMicro())
	dbtest.RunWith(t, db.Options{Clock: func() time.Time { return time.UnixMicro(now.Load()) }}, func(t *testing.T, d *db.DB) {
		ctx := context.Background()
		at := now.Load()
		due := map[string]int64{"soon": at + time.Minute.Microseconds(), "late": at + 25*time.Hour.Microseconds(), "past": at - 1}
		want := map[string]int64{"soon": due["soon"], "late": at, "past": at - 1}
		err := d.Write(ctx, func(tx *db.Tx) error {
			for name, due := range due {
				if _, err := addMail.Exec(tx, name, due); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		k := Keeper{DB: d, Waits: []func(*db.Tx) error{mail.ClockSetBack}, Logger: slog.New(slog.DiscardHandler)}
		if err := k.ShortenWaits(ctx); err != nil {
			t.Fatal(err)
		}
		for name, want := range want {
			err := d.Read(ctx, func(tx *db.Tx) error {
				got, err := mailDue.One(tx, name)
				if got != want {
					t.Errorf("%s is due at %d, want %d", name, got, want)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
}
