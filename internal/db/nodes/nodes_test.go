package nodes

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/patience"
)

func TestMain(m *testing.M)       { dbtest.Main(m) }
func TestStatements(t *testing.T) { dbtest.Declared(t) }

func enterAs(t *testing.T, d *db.DB, id string, every time.Duration) *Registry {
	t.Helper()
	r := New(Config{DB: d, Every: every, Logger: slog.New(slog.DiscardHandler), Self: Self{ID: id, Name: "node " + id, Door: id + ":1"}})
	if err := r.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r
}

func ids(all []Node) (out []string) {
	for _, n := range all {
		out = append(out, n.ID)
	}
	return out
}

// living answers the nodes that are live if they beat once an hour.
func living(t *testing.T, d *db.DB) (all []Node, err error) {
	t.Helper()
	err = d.Read(t.Context(), func(tx *db.Tx) error {
		all, err = alive(tx, time.Hour)
		return err
	})
	return all, err
}

// A node is live as long as it beats, and sees who else is.
func TestLiveNodes(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		enterAs(t, d, "b", time.Hour)
		const every = 50 * time.Millisecond
		a := enterAs(t, d, "a", every)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.Loop(ctx) }()
		patience.Until(t, "the node that does not beat is not live", func() bool { return slices.Equal(ids(a.Live()), []string{"a"}) })
		if all, err := living(t, d); err != nil || !slices.Equal(ids(all), []string{"a", "b"}) {
			t.Errorf("%v, %v", ids(all), err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := a.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if all, err := living(t, d); err != nil || !slices.Equal(ids(all), []string{"b"}) {
			t.Errorf("after one has left: %v, %v", ids(all), err)
		}
	})
}

// Of two processes with copies of one data folder, the older one ends.
func TestCopyOfANode(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		first := enterAs(t, d, "a", 50*time.Millisecond) // a beat has four times as long, and another follows
		enterAs(t, d, "a", time.Hour)
		if err := first.Loop(t.Context()); !errors.Is(err, ErrTaken) {
			t.Errorf("the loop ends with %v", err)
		}
	})
}

func TestIdentityStays(t *testing.T) {
	dir := t.TempDir()
	first, err := Identity(dir)
	if err != nil || first == "" {
		t.Fatal(first, err)
	}
	if again, err := Identity(dir); err != nil || again != first {
		t.Errorf("%q, then %q, %v", first, again, err)
	}
}

// The first home of a repository is its only one.
func TestHomes(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		a, b := enterAs(t, d, "a", time.Hour), enterAs(t, d, "b", time.Hour)
		for _, id := range []string{"a", "b"} {
			if err := Settle(t.Context(), d, id, [][2]string{{"acme", "web"}}); err != nil {
				t.Fatal(err)
			}
		}
		if n, ok, err := Home(t.Context(), d, "acme", "web"); err != nil || !ok || n.ID != "a" || n.Door != "a:1" {
			t.Errorf("%+v, %v, %v", n, ok, err)
		}
		if _, ok, err := Home(t.Context(), d, "acme", "none"); ok || err != nil {
			t.Error(ok, err)
		}
		if all, err := At(t.Context(), d, "b"); len(all) != 0 || err != nil {
			t.Error(all, err)
		}
		for _, want := range []int64{0, 1} {
			if n, err := b.Down(t.Context()); n != want || err != nil {
				t.Errorf("%d are away, %v; want %d", n, err, want)
			}
			if err := a.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Of what all nodes together may hold so many of, none gets more; who has waited longest is next.
func TestPlacesOfAllNodes(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		a, b, c := enterAs(t, d, "a", time.Hour), enterAs(t, d, "b", time.Hour), enterAs(t, d, "c", time.Hour)
		take := func(r *Registry, want bool) {
			t.Helper()
			if ok, err := r.Take(t.Context(), "key", 2); ok != want || err != nil {
				t.Errorf("%s: %v, %v", r.Self.ID, ok, err)
			}
		}
		take(a, true)
		take(b, true)
		take(a, false)
		take(b, false)
		b.Free(t.Context(), "key")
		take(b, false) // a was there before
		take(c, false)
		take(a, true)
		a.Free(t.Context(), "key")
		a.Free(t.Context(), "key")
		take(a, false) // the two that are free are for those that wait
		take(b, true)
		take(c, true)
		if ok, err := a.Take(t.Context(), "other", 1); !ok || err != nil {
			t.Error(ok, err)
		}
		// A process that is gone holds nothing.
		enterAs(t, d, "c", time.Hour)
		take(a, true)
	})
}

// Others are told once of a process that is gone, and at once if its node starts again; never of one that has
// stopped by itself.
func TestGone(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		enter := func(id, boot string, every time.Duration, told chan string) *Registry {
			r := New(Config{DB: d, Every: every, Boot: boot, Logger: slog.New(slog.DiscardHandler), Self: Self{ID: id},
				Gone: func(_ *db.Tx, boots []string) error {
					for _, b := range boots {
						told <- b
					}
					return nil
				}})
			if err := r.Enter(t.Context()); err != nil {
				t.Fatal(err)
			}
			return r
		}
		told := make(chan string, 100)
		if err := enter("left", "1", time.Hour, told).Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		enter("dead", "2", time.Hour, told)
		enter("dead", "3", time.Hour, told)
		a := enter("a", "4", 50*time.Millisecond, told)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.Loop(ctx) }()
		for _, want := range []string{"2", "3"} {
			if got := patience.Receive(t, "one that is gone", told); got != want {
				t.Errorf("%s is gone, want %s", got, want)
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if len(told) > 0 {
			t.Errorf("and %s", <-told)
		}
	})
}

// A place whose end could not be written is free with the next beat.
func TestPlaceIsFreeInTheEnd(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		a, b := enterAs(t, d, "a", 10*time.Millisecond), enterAs(t, d, "b", time.Hour)
		if ok, err := a.Take(t.Context(), "key", 1); !ok || err != nil {
			t.Fatal(ok, err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		a.Free(gone, "key")
		if ok, err := a.Take(gone, "key", 1); ok || err == nil {
			t.Error(ok, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- a.Loop(ctx) }()
		patience.Until(t, "the place is free", func() bool {
			ok, err := b.Take(t.Context(), "key", 1)
			return ok && err == nil
		})
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A node that was not seen for long leaves the list, unless it has repositories.
func TestForgottenNodes(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		for _, id := range []string{"a", "b", "c"} {
			enterAs(t, d, id, time.Hour)
		}
		if err := Settle(t.Context(), d, "b", [][2]string{{"acme", "web"}}); err != nil {
			t.Fatal(err)
		}
		err := d.Write(t.Context(), func(tx *db.Tx) error {
			now, err := clock(tx)
			if err != nil {
				return err
			}
			for _, id := range []string{"a", "b"} {
				if _, err := db.Select[string](tx, db.Build(`UPDATE nodes SET started_at = 0, seen_at = `,
					now-(forgotten+time.Minute).Microseconds()).SQL(` WHERE id = `, id).SQL(` RETURNING id`)); err != nil {
					return err
				}
			}
			return tidy(tx, now)
		})
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		err = d.Read(t.Context(), func(tx *db.Tx) (err error) {
			left, err = db.Select[string](tx, db.Build(`SELECT id FROM nodes ORDER BY id`))
			return err
		})
		if err != nil || !slices.Equal(left, []string{"b", "c"}) {
			t.Errorf("%v, %v", left, err)
		}
	})
}
