package limit

import (
	"bytes"
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"yardmaster/internal/api/limit/redistest"
)

// node is one of the nodes that share a server. It waits long for the server,
// because the machine may be busy.
func node(t *testing.T, address string, clock func() time.Time, log *slog.Logger) *Shared {
	t.Helper()
	s, err := Share(address, clock, log)
	if err != nil {
		t.Fatal(err)
	}
	s.wait = 20 * time.Second
	o := s.redis.Options()
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = s.wait, s.wait, s.wait, s.wait
	t.Cleanup(func() { s.Close() })
	return s
}

func TestSharedAddress(t *testing.T) {
	_, err := Share("http://:hunter2@host", time.Now, slog.New(slog.DiscardHandler))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v", err)
	}
}

// TestNodesShare holds that the nodes together admit as many concurrent requests as
// the bucket allows, and that buckets are separate.
func TestNodesShare(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	quiet := slog.New(slog.DiscardHandler)
	nodes := []*Shared{node(t, srv.URL(), time.Now, quiet), node(t, srv.URL(), time.Now, quiet)}
	var in atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for range 20 {
				s, ok := nodes[i%2].Take(Bucket{Name: "reads", Who: "x"}, 100)
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
	for _, b := range []Bucket{{Name: "writes", Who: "x"}, {Name: "reads", Who: "y"}, {Name: "reads", Who: "x", Talk: "x"},
		{Name: "reads", IP: Site("10.0.0.1")}} {
		if s, ok := nodes[0].Take(b, 1); !ok || s.Remaining != 0 {
			t.Errorf("%+v is not fresh: %+v", b, s)
		}
		if _, ok := nodes[1].Take(b, 1); ok {
			t.Errorf("%+v is not shared", b)
		}
	}
}

// TestSharedWindowSlides holds that a slot leaves the window after its time, and
// that an idle bucket is deleted.
func TestSharedWindowSlides(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s, c, ctx := node(t, srv.URL(), time.Now, slog.New(slog.DiscardHandler)), srv.Client(), t.Context()
	b := Bucket{Name: "reads", Who: "x"}
	now, err := c.Time(ctx).Result()
	if err != nil {
		t.Fatal(err)
	}
	second := func(ago int64) string { return strconv.FormatInt(now.Unix()-ago, 10) }
	if err := c.HSet(ctx, Key(b), second(200), 5, second(60), 4, second(30), 2).Err(); err != nil {
		t.Fatal(err)
	}
	got, ok := s.Take(b, 4)
	if !ok || got.Remaining != 1 || got.Reset < 1 || got.Reset > 30 {
		t.Errorf("after 2 within the window: %+v %v", got, ok)
	}
	for _, ago := range []int64{200, 60} {
		if here, err := c.HExists(ctx, Key(b), second(ago)).Result(); here || err != nil {
			t.Errorf("what was taken %d s ago is still held: %v", ago, err)
		}
	}
	if ttl, err := c.TTL(ctx, Key(b)).Result(); err != nil || ttl <= 0 || ttl > Window {
		t.Errorf("the bucket is kept for %v: %v", ttl, err)
	}
	if got, ok := s.Take(b, 1); ok || got.Remaining != 0 {
		t.Errorf("a bucket that has shrunk: %+v %v", got, ok)
	}
}

// asked counts the asks of a node.
type asked struct{ n atomic.Int64 }

func (a *asked) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" { // not what opens a connection
			a.n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (a *asked) DialHook(next redis.DialHook) redis.DialHook { return next }
func (a *asked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestServerGoesAway holds that each node counts for itself while the server is
// unreachable or hangs, asks it rarely meanwhile, logs that once, and shares
// again afterwards.
func TestServerGoesAway(t *testing.T) {
	t.Parallel()
	for name, how := range map[string]struct{ away, back func(*redistest.Server) }{
		"stopped": {(*redistest.Server).Stop, (*redistest.Server).Again},
		"frozen":  {(*redistest.Server).Freeze, (*redistest.Server).Thaw},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			clock := &hands{time.Unix(1_700_000_000, 0)}
			var told bytes.Buffer
			log := slog.New(slog.NewTextHandler(&told, nil))
			s := node(t, srv.URL(), clock.read, log)
			other := node(t, srv.URL(), time.Now, slog.New(slog.DiscardHandler))
			b := Bucket{Name: "reads", Who: "x"}
			other.Take(b, 3)
			if got, ok := s.Take(b, 3); !ok || got.Remaining != 1 {
				t.Fatalf("shared: %+v %v", got, ok)
			}

			how.away(srv)
			s.wait = answerTime
			var asks asked
			s.redis.AddHook(&asks)
			for i, want := range []State{{3, 1, 60}, {3, 0, 60}, {3, 0, 60}} {
				if got, ok := s.Take(b, 3); got != want || ok != (i < 2) {
					t.Errorf("alone, %d: %+v %v, want %+v", i, got, ok, want)
				}
			}
			clock.now = clock.now.Add(pause)
			s.Take(b, 3) // asks once more
			if n := asks.n.Load(); n != 2 {
				t.Errorf("four requests asked the server %d times; each ask is waited for", n)
			}
			if err := s.Ping(t.Context()); name == "stopped" && err == nil {
				t.Error("a stopped server answers")
			}
			if n := strings.Count(told.String(), "level=WARN"); n != 1 {
				t.Errorf("told %d times:\n%s", n, told.String())
			}

			how.back(srv)
			s.wait = 20 * time.Second
			clock.now = clock.now.Add(pause)
			s.Take(Bucket{Name: "reads", Who: "y"}, 3)
			if got, _ := other.Take(Bucket{Name: "reads", Who: "y"}, 3); got.Remaining != 1 {
				t.Errorf("not shared again: %+v\n%s", got, told.String())
			}
			if err := s.Ping(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKeysAreApart(t *testing.T) {
	seen := map[string]Bucket{}
	for _, b := range []Bucket{
		{Name: "reads", Who: "a"}, {Name: "reads", Talk: "a"}, {Name: "reads", Who: "a", Talk: "|"}, {Name: "reads", Who: "a", Talk: "||"},
		{Name: "reads", IP: Site("10.0.0.1")}, {Name: "reads", Who: "10.0.0.1"}, {Name: "reads"},
	} {
		if other, ok := seen[Key(b)]; ok {
			t.Errorf("%+v and %+v are one key", b, other)
		}
		seen[Key(b)] = b
	}
}
