package drawn

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"yardmaster/internal/api/limit"
	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/db/nodes"
	"yardmaster/internal/proof/patience"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// counted counts what is asked of a database.
type counted struct {
	Pool
	draws atomic.Int64
	fails atomic.Bool
}

func (c *counted) Draw(ctx context.Context, bucket string, most, want int) (nodes.Drawn, error) {
	c.draws.Add(1)
	if c.fails.Load() {
		return nodes.Drawn{}, errors.New("away")
	}
	return c.Pool.Draw(ctx, bucket, most, want)
}

// node is one of the nodes of a database. It waits long, because the machine may be busy.
func node(d *db.DB, clock func() time.Time) (*Limiter, *counted) {
	p := &counted{Pool: nodes.Counts{DB: d}}
	l := New(p, clock, slog.New(slog.DiscardHandler))
	l.wait = time.Minute
	return l, p
}

// Two nodes let in together as many requests as one would, whichever is asked and however many ask at once.
func TestNodesHaveOneLimit(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		a, _ := node(d, time.Now)
		b, _ := node(d, time.Now)
		both := []*Limiter{a, b}
		var in atomic.Int32
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				for range 20 {
					s, ok := both[i%2].Take(limit.Bucket{Name: "reads", Who: "x"}, 100)
					if ok {
						in.Add(1)
					}
					if s.Limit != 100 || s.Remaining < 0 || s.Remaining > 99 || s.Reset < 1 || s.Reset > 60 {
						t.Errorf("%+v", s)
					}
				}
			})
		}
		wg.Wait()
		if in.Load() != 100 {
			t.Errorf("%d of 400 got in, not 100", in.Load())
		}
		for range 100 {
			a.Take(limit.Bucket{Name: "writes", Who: "x"}, 100)
		}
		if s, ok := b.Take(limit.Bucket{Name: "writes", Who: "x"}, 100); ok || s.Remaining != 0 {
			t.Errorf("after 100 at one node the other lets one in: %+v", s)
		}
	})
}

// A client that asks often costs a few transactions, and one that is refused one a second.
func TestFewAsk(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		at := time.Now()
		l, p := node(d, func() time.Time { return at })
		b := limit.Bucket{Name: "address", IP: limit.Site("10.0.0.1")}
		for i := range 600 {
			if s, ok := l.Take(b, 1200); !ok || s.Remaining != 1199-i {
				t.Fatalf("%d: %+v %v", i, s, ok)
			}
		}
		if n := p.draws.Load(); n > 20 {
			t.Errorf("600 requests asked %d times", n)
		}
		for range 600 {
			l.Take(b, 1200)
		}
		before := p.draws.Load()
		for range 1000 {
			if _, ok := l.Take(b, 1200); ok {
				t.Fatal("more than the limit")
			}
		}
		if n := p.draws.Load() - before; n > 1 {
			t.Errorf("1000 refusals asked %d times", n)
		}
		t.Logf("1200 requests asked %d times", before)
	})
}

// What a node has drawn and does not spend is for the others after a second.
func TestSlotsComeBack(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		at := time.Now()
		clock := func() time.Time { return at }
		a, _ := node(d, clock)
		b, _ := node(d, clock)
		reads := limit.Bucket{Name: "reads", Who: "x"}
		for range 50 {
			a.Take(reads, 100)
		}
		at = at.Add(2 * pause)
		if err := a.pass(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		n := 0
		for ok := true; ok; n++ {
			_, ok = b.Take(reads, 100)
		}
		if n-1 != 50 {
			t.Errorf("after 50 at one node the other lets in %d", n-1)
		}
		at = at.Add(limit.Window)
		a.idle()
		if len(a.shares) != 0 {
			t.Errorf("%d shares are kept that nobody uses", len(a.shares))
		}
	})
}

// While the database does not answer a node counts by itself, says so once, and asks again after a moment.
func TestDatabaseIsAway(t *testing.T) {
	at := time.Now()
	l, p := node(dbtest.SQLite(t), func() time.Time { return at })
	var log bytes.Buffer
	l.log = slog.New(slog.NewTextHandler(&log, nil))
	p.fails.Store(true)
	b := limit.Bucket{Name: "reads", Who: "x"}
	for i := range 5 {
		if s, ok := l.Take(b, 3); ok != (i < 3) {
			t.Errorf("%d: %+v %v", i, s, ok)
		}
	}
	if n := p.draws.Load(); n != 1 {
		t.Errorf("it was asked %d times", n)
	}
	p.fails.Store(false)
	at = at.Add(pause)
	if s, ok := l.Take(b, 30); !ok || s.Remaining != 29 {
		t.Errorf("when it answers again: %+v %v", s, ok)
	}
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("the log has %d lines: %s", n, log.String())
	}
}

// Loop gives back by itself, and ends with its context.
func TestLoop(t *testing.T) {
	d := dbtest.SQLite(t)
	a, _ := node(d, time.Now)
	b := limit.Bucket{Name: "reads", Who: "x"}
	for range 10 {
		a.Take(b, 1000)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- a.Loop(ctx) }()
	patience.Until(t, "what was not spent is given back", func() bool {
		got, err := nodes.Counts{DB: d}.Draw(t.Context(), a.share(b).key, 1000, 1)
		return err == nil && got.Taken < 15+20
	})
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
