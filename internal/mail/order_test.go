package mail

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/db"
)

// hall remembers what it was given, and does something at the first letter.
type hall struct {
	got   []Letter
	first func()
	most  int // it is asked for no more
}

var errEnough = errors.New("enough")

func (h *hall) Send(_ context.Context, l Letter) error {
	if h.got = append(h.got, l); len(h.got) == 1 {
		h.first()
	}
	if len(h.got) > h.most {
		return fmt.Errorf("%w: %w", errDown, errEnough)
	}
	return nil
}

// A mail that somebody waits for leaves in the next batch, however many notices were posted
// before.
func TestCodesBeforeNotices(t *testing.T) {
	t.Parallel()
	h := &hall{most: 16}
	onBoth(t, h, func(t *testing.T, o *office) {
		*h = hall{most: 16}
		notice := welcome
		notice.List = "task_done"
		if err := o.DB.Write(t.Context(), func(tx *db.Tx) error {
			for range 5000 {
				if err := o.Post(tx, notice); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		h.first = func() { // while a batch is sent
			o.post(Message{To: "ann@example.com", Subject: "Your code", Text: "123456"})
		}
		o.run()
		for i, l := range h.got {
			if l.Subject != "Your code" {
				continue
			}
			if i != 8 {
				t.Errorf("the code is letter %d, behind more than the batch that was on its way", i+1)
			}
			return
		}
		t.Errorf("the code is not among the first %d letters", len(h.got))
	})
}

// A notice for somebody who has left the account is dropped when it would be sent, however
// long it has waited; other mails to the address are sent.
func TestReaderHasLeft(t *testing.T) {
	t.Parallel()
	h := &hall{most: 16}
	onBoth(t, h, func(t *testing.T, o *office) {
		*h = hall{most: 16, first: func() {}}
		var left atomic.Bool
		o.Hears = func(tx *db.Tx, userID string) (bool, error) {
			return tx.Account == "acme" && (userID != "bob" || !left.Load()), nil
		}
		night := time.UnixMicro(o.clock.Load()).Add(8 * time.Hour)
		for _, user := range []string{"ann", "bob"} {
			notice := welcome
			notice.To, notice.List, notice.After, notice.Reader = user+"@example.com", "task_done", night, Reader{"acme", user}
			o.post(notice)
		}
		o.post(Message{To: "bob@example.com", Subject: "Your code", Text: "123456", After: night})
		o.run()
		if len(h.got) != 0 {
			t.Fatalf("%d letters in the night", len(h.got))
		}
		left.Store(true)
		o.clock.Store(night.UnixMicro())
		o.run()
		if len(h.got) != 2 || h.got[0].Subject != "Your code" || h.got[1].To != "ann@example.com" {
			t.Errorf("sent %+v", h.got)
		}
		left.Store(false)
		o.clock.Add(time.Hour.Microseconds())
		o.run()
		if len(h.got) != 2 {
			t.Errorf("what was dropped is sent: %+v", h.got[2:])
		}
	})
}

var mailsLeft = db.Q[int](`SELECT COUNT(*) FROM mails`)

// Mails that are over are kept for as long as the operator says, those that wait until they
// are sent.
func TestKept(t *testing.T) {
	t.Parallel()
	h := &hall{most: 16}
	onBoth(t, h, func(t *testing.T, o *office) {
		*h = hall{most: 16, first: func() {}}
		o.post(welcome)
		o.run()
		waits := welcome
		waits.After = time.UnixMicro(o.clock.Load()).Add(400 * 24 * time.Hour)
		o.post(waits)
		left := func(keep time.Duration) (n int) {
			t.Helper()
			o.Keep = keep
			if err := o.DB.Write(t.Context(), func(tx *db.Tx) (err error) {
				if err := o.forget(tx); err != nil {
					return err
				}
				n, err = mailsLeft.One(tx)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			return n
		}
		o.clock.Add((31 * 24 * time.Hour).Microseconds())
		for _, c := range []struct {
			days int
			want int
		}{{0, 2}, {32, 2}, {30, 1}} {
			if got := left(time.Duration(c.days) * 24 * time.Hour); got != c.want {
				t.Errorf("kept for %d days: %d mails are left, and not %d", c.days, got, c.want)
			}
		}
	})
}
