package approval

import (
	"errors"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
)

// A mail waits until it is known what is protected, and for the code host; neither keeps
// it for good.
func TestWaits(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *desk) {
		d.asker, d.q.Looked, d.unread = "mia", false, errors.New("the host is away")
		d.ask()
		d.later(5 * time.Second)
		d.pass()
		if to, _ := d.posted(); len(to) != 0 {
			t.Fatalf("written to %q", to)
		}
		for range 10 {
			d.later(2 * time.Minute)
			d.pass()
		}
		to, texts := d.posted()
		if len(to) != 1 || !strings.Contains(texts["mia"], "did not say which files") {
			t.Errorf("%q", texts)
		}
	})
}

// A mail that waits for the trial of the merge goes out with it, and what has no mail is left alone.
func TestTried(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, d *desk) {
		tried := func() {
			d.write(func(tx *db.Tx) error { return d.Tried(tx, d.q.ID) })
			d.pass()
		}
		d.asker, d.q.Looked = "mia", false
		tried() // nothing is asked yet
		d.ask()
		d.q.Looked = true
		d.pass()
		if to, _ := d.posted(); len(to) != 0 {
			t.Fatalf("written to %q before it was told of the trial", to)
		}
		tried()
		tried()
		if to, _ := d.posted(); len(to) != 1 {
			t.Errorf("written to %q", to)
		}
	})
}
