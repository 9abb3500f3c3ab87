package artifact

import (
	"context"
	"errors"
	"testing"
	"time"

	"yardmaster/internal/fault"
)

var errCrash = errors.New("the store was cut off")

// Whatever an end is interrupted by, and in whichever order, what shows has its bytes, and in
// the end neither row nor object is left.
func TestEndIsInterrupted(t *testing.T) {
	t.Parallel()
	fail := func() error { return errCrash }
	for name, c := range map[string]func(*yard, context.CancelFunc){
		"before the object is deleted": func(y *yard, _ context.CancelFunc) { y.store.before = fail },
		"the store does not answer":    func(y *yard, _ context.CancelFunc) { y.store.after = fail },
		"after the object is deleted": func(y *yard, stop context.CancelFunc) {
			y.store.after = func() error { stop(); return nil }
		},
	} {
		for _, by := range []string{"a person", "its time"} {
			t.Run(name+" by "+by, func(t *testing.T) {
				t.Parallel()
				onBoth(t, func(t *testing.T, y *yard) {
					u := y.stored(putIn{})
					ctx, stop := context.WithCancel(y.ctx)
					defer stop()
					c(y, stop)
					if by == "a person" {
						if out, err := y.delete(ctx, idIn{u.ID}); err != nil || !out.Deleted {
							t.Fatal(out, err)
						}
					} else {
						y.later(181 * day)
						_ = y.Due.Drain(ctx) // it was interrupted
					}
					if y.shown() != 0 || y.getKind(u.ID) != fault.NotFound {
						t.Error("it shows")
					}
					y.store.before, y.store.after = nil, nil
					for range 4 {
						y.pass(25 * time.Hour)
					}
					if n, _ := y.rows(); n != 0 || y.objects() != 0 || y.events("artifact.deleted") != 1 {
						t.Errorf("%d rows, %d objects, told %d times", n, y.objects(), y.events("artifact.deleted"))
					}
				})
			})
		}
	}
}

// Whoever has the address of an upload cannot bring back for good what was deleted.
func TestUploadAfterDeletion(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		u := y.stored(putIn{})
		for want := true; ; want = false {
			out, err := y.delete(y.ctx, idIn{u.ID})
			if err != nil || out.Deleted != want {
				t.Fatal(out, err)
			}
			if !want {
				break
			}
		}
		if n, bytes := y.rows(); n != 1 || bytes != 0 || y.objects() != 0 {
			t.Errorf("%d rows of %d bytes, %d objects", n, bytes, y.objects())
		}
		y.send(u, "9876543210")
		y.Stored(t.Context(), y.account+"/artifacts/"+u.ID)
		if y.shown() != 0 || y.getKind(u.ID) != fault.NotFound {
			t.Error("it is back")
		}
		y.pass(25 * time.Hour)
		if n, _ := y.rows(); n != 0 || y.objects() != 0 {
			t.Errorf("%d rows, %d objects", n, y.objects())
		}
	})
}

// Artifacts of runs go after thirty days, others after 180, and so does what was shared.
func TestRetention(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		y.stored(putIn{RunID: &y.places.run})
		y.stored(putIn{})
		link := y.stored(putIn{RunID: &y.places.run})
		if _, err := y.share(y.ctx, shareIn{ID: link.ID}); err != nil {
			t.Fatal(err)
		}
		for i, step := range []struct {
			after time.Duration
			left  int
		}{{29 * day, 3}, {2 * day, 2}, {148 * day, 2}, {2 * day, 0}} {
			y.pass(step.after)
			if n, _ := y.rows(); n != step.left || y.objects() != step.left || y.shown() != step.left {
				t.Errorf("step %d: %d rows, %d objects", i, n, y.objects())
			}
		}
	})
}

// What the store has lost, or has in another size, does not show; it shows again when it is
// back.
func TestLostObject(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		u := y.stored(putIn{})
		key := y.account + "/artifacts/" + u.ID
		if err := y.folder.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if y.getKind(u.ID) != fault.NotFound || y.shown() != 0 {
			t.Error("it shows")
		}
		if _, err := y.share(y.ctx, shareIn{ID: u.ID}); fault.From(err).Slug != "bytes-missing" {
			t.Error(err)
		}
		if status := y.send(u, "0123456789"); status != 200 {
			t.Error(status)
		}
		if y.getKind(u.ID) != fault.Internal || y.shown() != 1 {
			t.Error("it is not back")
		}
	})
}

// A store that fails or is slow is a 503, and nothing changes.
func TestStoreIsAway(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, y *yard) {
		u := y.stored(putIn{})
		link, err := y.share(y.ctx, shareIn{ID: u.ID})
		if err != nil {
			t.Fatal(err)
		}
		for name, stat := range map[string]func() error{
			"wrong": func() error { return errCrash },
			"slow":  func() error { return context.DeadlineExceeded },
		} {
			y.store.stat = stat
			_, get := y.get(y.ctx, idIn{u.ID})
			_, share := y.share(y.ctx, shareIn{ID: u.ID})
			_, open := y.open(t.Context(), openIn{tokenOf(link.URL)})
			for _, err := range []error{get, share, open} {
				if f := fault.From(err); f.Kind != fault.Unavailable || f.Slug != "object-store-unavailable" || f.RetryAfter == 0 {
					t.Errorf("%s: %v", name, err)
				}
			}
			y.pass(time.Hour)
			if y.shown() != 1 {
				t.Errorf("%s: it does not show", name)
			}
		}
	})
}
