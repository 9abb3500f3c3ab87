package nodes

import (
	"slices"
	"testing"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

func draw(t *testing.T, c Counts, bucket string, most, want int) Drawn {
	t.Helper()
	d, err := c.Draw(t.Context(), bucket, most, want)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// All nodes together take no more of a bucket than it has; one takes a quarter of what is left at once.
func TestDraw(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		c := Counts{d}
		var got []int
		for range 6 {
			got = append(got, draw(t, c, "b", 12, 5).Granted)
		}
		if want := []int{3, 2, 1, 1, 1, 1}; !slices.Equal(got, want) {
			t.Errorf("granted %v, want %v", got, want)
		}
		first := draw(t, c, "other", 1, 5)
		if first.Granted != 1 || first.Taken != 1 || first.Frees != minute {
			t.Errorf("another bucket: %+v", first)
		}
		if none := draw(t, c, "other", 1, 5); none.Granted != 0 || none.Taken != 1 || none.Frees < 1 || none.Frees > minute {
			t.Errorf("a bucket that is full: %+v", none)
		}
		if err := c.Return(t.Context(), []Rest{{Bucket: "other", Second: first.Second, Slots: 1}}); err != nil {
			t.Fatal(err)
		}
		if again := draw(t, c, "other", 1, 5); again.Granted != 1 {
			t.Errorf("after a slot was given back: %+v", again)
		}
	})
}

// Slots are free after a minute, and their rows go.
func TestDrawSlides(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		c := Counts{d}
		at := draw(t, c, "b", 10, 2).Second
		age := func(by int64) {
			t.Helper()
			err := d.Write(t.Context(), func(tx *db.Tx) error {
				_, err := db.Select[string](tx, db.Build(`UPDATE request_counts SET second = second - `, by).SQL(` RETURNING bucket`))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		age(30)
		second := draw(t, c, "b", 10, 1)
		if second.Taken != 3 || second.Frees > 30 || second.Frees < 1 {
			t.Errorf("after half a minute: %+v", second)
		}
		age(31)
		if third := draw(t, c, "b", 10, 1); third.Taken != 2 {
			t.Errorf("after a minute: %+v, first at %d", third, at)
		}
		age(2 * minute)
		if err := c.Tidy(t.Context()); err != nil {
			t.Fatal(err)
		}
		var left []int64
		err := d.Read(t.Context(), func(tx *db.Tx) (err error) {
			left, err = db.Select[int64](tx, db.Build(`SELECT COUNT(*) FROM request_counts`))
			return err
		})
		if err != nil || !slices.Equal(left, []int64{0}) {
			t.Errorf("%v rows are left, %v", left, err)
		}
	})
}
