package due

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/event"
)

// The test program is also the node: with DUE_CHILD it opens the database, works, and kills
// itself with SIGKILL at the point that DUE_KILL names, such as "recording:3" for the third.
func child() {
	point, nth, _ := strings.Cut(os.Getenv("DUE_KILL"), ":")
	left, _ := strconv.Atoi(nth)
	var mu sync.Mutex
	at := func(name string) {
		mu.Lock()
		defer mu.Unlock()
		if name != point {
			return
		}
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	var o db.Options
	if text := os.Getenv("DUE_SKEW"); text != "" {
		skew, err := time.ParseDuration(text)
		if err != nil {
			panic(err)
		}
		o.Clock = func() time.Time { return time.Now().Add(skew) }
	}
	o.MaxConns = 8
	d, err := db.Open(context.Background(), os.Getenv("DUE_DSN"), o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	name, far := os.Getenv("DUE_CHILD"), os.Getenv("DUE_FAR")
	slow, _ := time.ParseDuration(os.Getenv("DUE_SLOW"))
	held, err := time.ParseDuration(os.Getenv("DUE_HOLD"))
	if err != nil {
		held = time.Second
	}
	k := New(Config{DB: d, Hub: event.NewHub(), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)), Every: 500 * time.Millisecond})
	k.node, k.point, k.own = name, at, os.Getenv("DUE_WALL") == ""
	Register(k, Queue[job]{Name: "jobs", Hold: held, AtOnce: 4, Load: loadJob, Work: func(ctx context.Context, j Job[job]) Outcome {
		if j.Key == "deadly" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		r, err := http.Post(far+"/?key="+j.Key+"&node="+name, "", nil)
		if err != nil {
			return Again(err)
		}
		r.Body.Close()
		at("far")
		select {
		case <-time.After(slow):
		case <-ctx.Done():
			return Again(ctx.Err())
		}
		return Done(func(tx *db.Tx) error {
			if err := finished(name, j.Key)(tx); err != nil {
				return err
			}
			at("half recorded")
			return nil
		})
	}, GiveUp: func(tx *db.Tx, key, why string) error {
		_, err := endJob.Exec(tx, key, "failed")
		return err
	}})
	_ = k.Loop(context.Background())
}

// far is the other side of the wire: it counts what was asked of it.
type far struct {
	*httptest.Server
	mu    sync.Mutex
	calls map[string]int
}

func farSide(t *testing.T) *far {
	f := &far{calls: map[string]int{}}
	f.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calls[r.FormValue("key")]++
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *far) all() (n, most int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		n, most = n+c, max(most, c)
	}
	return n, most
}

// process starts a node; died is closed when it has ended.
func process(t *testing.T, dsn string, f *far, name string, env ...string) (died chan struct{}, kill func()) {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), append(env, "DUE_CHILD="+name, "DUE_DSN="+dsn, "DUE_FAR="+f.URL)...)
	if os.Getenv("DUE_LOG") != "" {
		c.Stderr = os.Stderr
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	died = make(chan struct{})
	go func() { _ = c.Wait(); close(died) }()
	kill = func() { _ = c.Process.Kill(); <-died }
	t.Cleanup(kill)
	return died, kill
}

// ended tells whether a process has.
func ended(died <-chan struct{}) bool {
	select {
	case <-died:
		return true
	default:
		return false
	}
}

func seedJobs(t *testing.T, d *db.DB, n int) *node {
	s := start(t, d, "seed", Queue[job]{Name: "jobs"})
	must(t, d, func(tx *db.Tx) error {
		for i := range n {
			if err := s.add(tx, fmt.Sprint("job", i), fmt.Sprint("account", i%3), Entry{Account: fmt.Sprint("account", i%3)}); err != nil {
				return err
			}
		}
		return nil
	})
	return s
}

// A node that is killed between any two steps loses nothing and records nothing twice; the far
// side is asked again only for what was in work. On PostgreSQL another node lives beside it;
// on SQLite the next process opens the same file.
func TestKilled(t *testing.T) {
	t.Parallel()
	points := []string{"claiming", "claimed", "begun", "far", "worked", "half recorded", "recording", "recorded", "renewed"}
	onBoth(t, func(t *testing.T, dsn string) {
		pg := !strings.HasPrefix(dsn, "sqlite:")
		d := dbtest.Open(t, dsn, db.Options{})
		for _, point := range points {
			for _, nth := range []int{1, 3} {
				const jobs = 12
				must(t, d, func(tx *db.Tx) error {
					for _, empty := range []db.Stmt{dropJobs, dropNotes, dropAll} {
						if _, err := empty.Exec(tx); err != nil {
							return err
						}
					}
					return nil
				})
				f := farSide(t)
				seedJobs(t, d, jobs)
				slow := "DUE_SLOW=5ms"
				if point == "renewed" {
					slow = "DUE_SLOW=700ms"
				}
				died, end := process(t, dsn, f, "victim", slow, fmt.Sprintf("DUE_KILL=%s:%d", point, nth))
				over := func() bool { return count(t, d, records) == jobs }
				var kill func()
				if pg {
					soon(t, "its first claim", func() bool { return ended(died) || count(t, d, heldBy, "victim") > 0 || over() })
					_, kill = process(t, dsn, f, "other", slow)
				}
				soon(t, fmt.Sprintf("%s:%d", point, nth), func() bool { return ended(died) || over() })
				if nth == 1 && !pg && !ended(died) {
					t.Errorf("%s was not reached", point)
				}
				if !pg {
					_, kill = process(t, dsn, f, "next", slow)
				}
				soon(t, point+": all jobs", over)
				soon(t, point+": no entry", func() bool { return count(t, d, entries) == 0 })
				kill()
				end() // it may not have come to its point
				n, most := f.all()
				if n < jobs || n > jobs+4 || most > 2 {
					t.Errorf("%s:%d: the far side was asked %d times, at most %d times for one", point, nth, n, most)
				}
				t.Logf("%-14s %d: asked %d times for %d jobs, %2d by the victim", point, nth, n, jobs, count(t, d, recordsBy, "victim"))
			}
		}
	})
}

// An entry that kills each node that works on it is set aside after the third, and what was
// worked on beside it is not.
func TestDeadly(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, dsn string) {
		d := dbtest.Open(t, dsn, db.Options{})
		f := farSide(t)
		s := seedJobs(t, d, 30)
		s.put(t, "deadly", "account1")
		deaths := 0
		stop := make(chan bool)
		var all sync.WaitGroup
		all.Go(func() { // a supervisor
			for {
				died, kill := process(t, dsn, f, fmt.Sprint("node", deaths), "DUE_SLOW=20ms")
				select {
				case <-died:
					deaths++
				case <-stop:
					kill()
					return
				}
			}
		})
		soon(t, "the good ones", func() bool { return count(t, d, records) == 30 })
		soon(t, "the deadly one", func() bool { return count(t, d, jobsIn, "failed") == 1 })
		close(stop)
		all.Wait()
		n, most := f.all()
		t.Logf("%d deaths; the far side was asked %d times for 30 jobs, at most %d times for one", deaths, n, most)
		if deaths != 3 || count(t, d, entries) != 0 {
			t.Errorf("%d deaths, %d entries left", deaths, count(t, d, entries))
		}
	})
}

// A node whose clock is wrong by an hour disturbs nobody, since all nodes go by the database's
// clock. The control shows that it would if each went by its own.
func TestWrongClock(t *testing.T) {
	for _, skew := range []string{"1h", "-1h"} {
		for _, wall := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s wall=%t", skew, wall), func(t *testing.T) {
				t.Parallel()
				const jobs = 12
				dsn, f := database(t, db.Postgres), farSide(t)
				d := dbtest.Open(t, dsn, db.Options{})
				s := start(t, d, "seed", Queue[job]{Name: "jobs"})
				env := []string{"DUE_SLOW=500ms", "DUE_HOLD=20s"}
				if wall {
					env = append(env, "DUE_WALL=1")
				}
				_, kill := process(t, dsn, f, "right", env...)
				_, kill2 := process(t, dsn, f, "wrong", append(env, "DUE_SKEW="+skew)...)
				must(t, d, func(tx *db.Tx) error {
					for i := range jobs {
						e := Entry{Account: "acme"}
						if i >= jobs/2 {
							e.After = time.Second
						}
						if err := s.add(tx, fmt.Sprint("job", i), "acme", e); err != nil {
							return err
						}
					}
					return nil
				})
				soon(t, "the jobs", func() bool {
					n, _ := f.all()
					return wall && n > jobs || count(t, d, records) == jobs
				})
				kill()
				kill2()
				n, most := f.all()
				t.Logf("asked %d times for %d jobs, at most %d times for one", n, jobs, most)
				if !wall && n != jobs {
					t.Error("the wrong clock did harm")
				}
			})
		}
	}
}
