package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
	"yardmaster/internal/proof/patience"
)

func TestMain(m *testing.M)       { dbtest.Main(m) }
func TestStatements(t *testing.T) { dbtest.Declared(t) }

const soon = 20 * time.Millisecond

func config(d *db.DB, cluster bool) Config {
	return Config{DB: d, Cluster: cluster, Name: "http://one on host", Every: soon, Logger: slog.New(slog.DiscardHandler)}
}

// settle makes the row of a server that runs as the process.
func settle(t *testing.T, d *db.DB, name, process string) {
	t.Helper()
	err := d.Write(t.Context(), func(tx *db.Tx) error {
		_, err := insertServer.Exec(tx, insertServerArgs{
			ID: name, Cluster: false, Name: name, Process: process, StartedAt: tx.Micros(),
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, c Config) *Lease {
	t.Helper()
	l, err := Take(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func refused(t *testing.T, c Config, words ...string) {
	t.Helper()
	_, err := Take(t.Context(), c)
	if !errors.Is(err, ErrInUse) {
		t.Fatalf("a second server: %v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("no %q in %q", w, err)
		}
	}
}

func TestOneServerUnlessAllShare(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		first := take(t, config(d, false))
		refused(t, config(d, false), "http://one on host", "--cluster on")
		refused(t, config(d, true), "was not started with --cluster on")
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		take(t, config(d, true))
		take(t, config(d, true))
		refused(t, config(d, false))
	})
}

// TestOfManyAtOnceOneGetsIn holds that one of several servers that start together
// gets the lease.
func TestOfManyAtOnceOneGetsIn(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		got := make(chan error)
		for range 6 {
			go func() {
				_, err := Take(context.WithoutCancel(t.Context()), config(d, false))
				got <- err
			}()
		}
		in := 0
		for range 6 {
			if err := <-got; err == nil {
				in++
			} else if !errors.Is(err, ErrInUse) {
				t.Error(err)
			}
		}
		if in != 1 {
			t.Errorf("%d servers got in", in)
		}
	})
}

func TestKilledServers(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		other := exec.CommandContext(t.Context(), "sleep", "600")
		if err := other.Start(); err != nil {
			t.Fatal(err)
		}
		pid := other.Process.Pid
		settle(t, d, "here", fmt.Sprintf("%s %d %s", namespace(), pid, started(pid)))
		c := config(d, false)
		c.Every = time.Hour // nothing is waited for
		refused(t, c, "here")
		if err := other.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = other.Wait() // that it was killed is no news
		l := take(t, c)
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}

		// A server on another machine counts as ended after a long enough silence.
		settle(t, d, "there", "another-boot pid:[1] 1 1")
		take(t, config(d, false))
	})
}

// TestServerElsewhere holds that a running server on another machine never counts
// as ended.
func TestServerElsewhere(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		settle(t, d, "there", "another-boot pid:[1] 1 1")
		ctx, stop := context.WithCancel(t.Context())
		beats := (&Lease{config(d, false), "there"})
		beats.Every = soon / 4
		ended := make(chan error)
		go func() { ended <- beats.Loop(ctx) }()
		c := config(d, false)
		c.pause = func(time.Duration) <-chan time.Time { // until the other server has sent a beat
			before, now := beats.count(t), make(chan time.Time)
			patience.Until(t, "another beat", func() bool { return beats.count(t) > before })
			close(now)
			return now
		}
		refused(t, c, "there")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// count returns the beats of a server.
func (l *Lease) count(t *testing.T) (n int64) {
	t.Helper()
	err := l.DB.Read(t.Context(), func(tx *db.Tx) error {
		all, err := selectServers.All(tx)
		for _, s := range all {
			if s.ID == l.id {
				n = s.Beats
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestLostLease holds that a server ends if another one has taken the database
// over.
func TestLostLease(t *testing.T) {
	dbtest.Run(t, func(t *testing.T, d *db.DB) {
		l := take(t, config(d, false))
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Loop(t.Context()); !errors.Is(err, ErrInUse) {
			t.Errorf("the loop ends with %v", err)
		}
	})
}
