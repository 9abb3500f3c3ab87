package limit

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	_ "yardmaster/internal/proof/chance" // seeds rapid
)

// hands is a clock that a test turns.
type hands struct{ now time.Time }

func (h *hands) read() time.Time { return h.now }

func counter() (*Counter, *hands) {
	h := &hands{time.Unix(1_700_000_000, 0)}
	return New(h.read), h
}

func TestTake(t *testing.T) {
	c, clock := counter()
	b := Bucket{Name: "reads", Who: "a"}
	for i, step := range []struct {
		pass time.Duration // before it is asked
		max  int
		want State
		room bool
	}{
		{0, 3, State{3, 2, 60}, true},
		{10 * time.Second, 3, State{3, 1, 50}, true},
		{0, 3, State{3, 0, 50}, true},
		{0, 3, State{3, 0, 50}, false},
		{49 * time.Second, 3, State{3, 0, 1}, false},
		{time.Second, 3, State{3, 0, 10}, true}, // the first has left, the two of second 10 have not
		{time.Second, 3, State{3, 0, 9}, false},
		{9 * time.Second, 3, State{3, 1, 50}, true}, // only that of second 60 is left
		{time.Hour, 3, State{3, 2, 60}, true},
		{0, 1, State{1, 0, 60}, false}, // a bucket that has shrunk
	} {
		clock.now = clock.now.Add(step.pass)
		got, room := c.Take(b, step.max)
		if got != step.want || room != step.room {
			t.Errorf("step %d: %+v %v, want %+v %v", i, got, room, step.want, step.room)
		}
	}
}

func TestBucketsAreApart(t *testing.T) {
	c, _ := counter()
	for _, b := range []Bucket{
		{Name: "reads", Who: "a"}, {Name: "writes", Who: "a"}, {Name: "reads", Who: "b"}, {Name: "writes", Who: "a", Talk: "x"},
		{Name: "reads", IP: Site("10.0.0.1")}, {Name: "reads", IP: Site("10.0.0.2")},
	} {
		if s, ok := c.Take(b, 1); !ok || s.Remaining != 0 {
			t.Errorf("%+v is not fresh: %+v", b, s)
		}
	}
}

// TestWindowHolds holds that no more slots are taken in any 60 seconds than a
// bucket allows, that no refusal is without a cause, and that a caller who waits as
// long as Reset says is admitted.
func TestWindowHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, clock := counter()
		start := clock.now
		max := rapid.IntRange(1, 12).Draw(t, "max")
		var taken []int // seconds since the start
		for range rapid.IntRange(1, 200).Draw(t, "calls") {
			clock.now = clock.now.Add(time.Duration(rapid.IntRange(0, 20_000).Draw(t, "ms")) * time.Millisecond)
			second := int(clock.now.Sub(start) / time.Second)
			for len(taken) > 0 && taken[0] <= second-seconds {
				taken = taken[1:]
			}
			s, room := c.Take(Bucket{Who: "x"}, max)
			if room != (len(taken) < max) {
				t.Fatalf("%d of %d taken, and room is %v", len(taken), max, room)
			}
			if room {
				taken = append(taken, second)
			}
			if want := (State{max, max - len(taken), taken[0] + seconds - second}); s != want {
				t.Fatalf("%+v, want %+v", s, want)
			}
			if !room {
				clock.now = clock.now.Add(time.Duration(s.Reset) * time.Second)
				if _, room = c.Take(Bucket{Who: "x"}, max); !room {
					t.Fatalf("no room after the %d s it asked for", s.Reset)
				}
				taken = append(taken, int(clock.now.Sub(start)/time.Second))
			}
		}
	})
}

func TestAllAtOnce(t *testing.T) {
	c, _ := counter()
	var wg sync.WaitGroup
	var mu sync.Mutex
	in := 0
	for range 50 {
		wg.Go(func() {
			for range 20 {
				if _, ok := c.Take(Bucket{Who: "x"}, 600); ok {
					mu.Lock()
					in++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if in != 600 {
		t.Errorf("%d of 1000 got in, not 600", in)
	}
}

func TestIdleBucketsGo(t *testing.T) {
	c, clock := counter()
	for i := range 10_000 {
		c.Take(Bucket{Who: fmt.Sprint(i)}, 10)
	}
	clock.now = clock.now.Add(2 * Window)
	for i := range 1000 { // one of these meets every shard
		c.Take(Bucket{Who: "again" + fmt.Sprint(i)}, 10)
	}
	n := 0
	for i := range c.shards {
		n += len(c.shards[i].buckets)
	}
	if n != 1000 {
		t.Errorf("%d buckets are left, not 1000", n)
	}
}

func TestTighter(t *testing.T) {
	for _, c := range []struct {
		a, b State
		want bool
	}{
		{State{120, 5, 10}, State{600, 6, 60}, true},
		{State{120, 6, 10}, State{600, 5, 60}, false},
		{State{120, 0, 10}, State{600, 0, 5}, true}, // frees later
		{State{120, 0, 5}, State{600, 0, 10}, false},
	} {
		if got := c.a.Tighter(c.b); got != c.want {
			t.Errorf("%+v tighter than %+v: %v", c.a, c.b, got)
		}
	}
}

func TestSite(t *testing.T) {
	for a, b := range map[string]string{
		"2001:db8:1:2:3::4": "2001:db8:1:2:ffff::1",
		"::ffff:10.0.0.1":   "10.0.0.1",
		"fe80::1%eth0":      "fe80::2",
		"":                  "nonsense",
	} {
		if Site(a) != Site(b) {
			t.Errorf("%s and %s are two sites", a, b)
		}
	}
	if Site("10.0.0.1") == Site("10.0.0.2") || Site("2001:db8:1:2::1") == Site("2001:db8:1:3::1") {
		t.Error("two sites are one")
	}
}

func TestTakeAllocatesNothing(t *testing.T) {
	c := New(time.Now)
	b := Bucket{Name: "reads", Who: "somebody"}
	c.Take(b, 600)
	if n := testing.AllocsPerRun(1000, func() { c.Take(b, 600) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTake(b *testing.B) {
	c := New(time.Now)
	for b.Loop() {
		c.Take(Bucket{Name: "reads", Who: "somebody"}, 600)
	}
}
