// Package lease keeps a second server off a database that another server uses,
// unless both are configured to share it. A running server increases a number in
// its row every few seconds. A row whose number does not change for three times as
// long belongs to a server that was killed, and is removed. No other work of a
// server waits for the lease.
package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"yardmaster/internal/db"
	"yardmaster/internal/db/meta"
	"yardmaster/internal/id"
	"yardmaster/internal/observe"
)

const (
	defaultEvery = 5 * time.Second
	// silence is the number of missing beats after which a server counts as ended.
	silence = 3
)

// ErrInUse means that another server uses the database.
var ErrInUse = errors.New("database-in-use")

// Config configures a lease.
type Config struct {
	DB      *db.DB
	Cluster bool          // share the database with servers that share it, too
	Name    string        // for people: address of the server
	Every   time.Duration // between two beats; 5 s when 0
	Logger  *slog.Logger
	pause   func(time.Duration) <-chan time.Time // time.After; a test has its own
}

// Lease is the right to use a database, until Release.
type Lease struct {
	Config
	id string
}

// Take returns a lease, or wraps ErrInUse. If a server on another machine was
// killed, Take waits until that server counts as ended; it sees at once whether a
// server on this machine has ended.
func Take(ctx context.Context, c Config) (*Lease, error) {
	if c.Every == 0 {
		c.Every = defaultEvery
	}
	if c.pause == nil {
		c.pause = time.After
	}
	l := &Lease{c, id.New()}
	known := map[string]int64{} // beats of each rival at its first sight
	for round := 0; ; round++ {
		rivals, err := l.try(ctx, func(s server) bool {
			beats, seen := known[s.ID]
			return died(s.Process) || round >= silence && seen && beats == s.Beats
		})
		if err != nil || len(rivals) == 0 {
			return l, err
		}
		for _, r := range rivals {
			before, seen := known[r.ID]
			if known[r.ID] = r.Beats; seen && r.Beats != before || r.Process == process() || runs(r.Process) {
				return nil, inUse(r, c.Cluster)
			}
		}
		if round == 0 {
			c.Logger.WarnContext(ctx, "another server was at work on this database; waiting to see whether it still is",
				slog.String("server", rivals[0].Name), slog.Time("since", rivals[0].StartedAt))
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.pause(c.Every + c.Every/10):
		}
	}
}

func inUse(r server, cluster bool) error {
	how := "several share one only if each is started with --cluster on"
	if cluster {
		how = "that one was not started with --cluster on"
	}
	return fmt.Errorf("%w: the server %s, started %s, serves this database; %s",
		ErrInUse, r.Name, r.StartedAt.UTC().Format(time.RFC3339), how)
}

// try takes the lease unless there are rivals, which it returns. It removes the
// rows of servers that have ended.
func (l *Lease) try(ctx context.Context, gone func(server) bool) (rivals []server, err error) {
	err = l.DB.Write(ctx, func(tx *db.Tx) error {
		rivals = nil
		if err := meta.Lock(tx, gate); err != nil {
			return err
		}
		all, err := selectServers.All(tx)
		if err != nil {
			return err
		}
		for _, s := range all {
			switch {
			case gone(s):
				if _, err := deleteServer.Exec(tx, s.ID); err != nil {
					return err
				}
			case !s.Cluster || !l.Cluster:
				rivals = append(rivals, s)
			}
		}
		if len(rivals) == 0 {
			_, err = insertServer.Exec(tx, insertServerArgs{
				ID: l.id, Cluster: l.Cluster, Name: l.Name, Process: process(), StartedAt: tx.Micros(),
			})
		}
		return err
	})
	return rivals, err
}

// Loop renews the lease until ctx ends. It wraps ErrInUse if another server has
// taken the database over because this one did not renew its lease.
func (l *Lease) Loop(ctx context.Context) error {
	tick := time.NewTicker(l.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var n int64
		in, end := observe.Pass(ctx, "lease.renew")
		err := l.DB.Write(in, func(tx *db.Tx) (err error) {
			n, err = beat.Exec(tx, l.id)
			return err
		})
		observe.Failed(in, err)
		end()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			l.Logger.WarnContext(ctx, "the lease on the database was not renewed", slog.Any("error", err))
		case n == 0:
			return fmt.Errorf("%w: this server did not renew its lease for some time, "+
				"and another one has taken the database over", ErrInUse)
		}
	}
}

// Release gives the lease up, so that the next server can take it at once.
func (l *Lease) Release(ctx context.Context) error {
	return l.DB.Write(ctx, func(tx *db.Tx) error {
		_, err := deleteServer.Exec(tx, l.id)
		return err
	})
}

// process identifies this process so that others on the machine can tell whether it
// still runs. Process ids are reused, so the text also has the start time, the boot
// of the machine, and the namespace of the id. It is empty where this is unknown.
func process() string {
	pid := os.Getpid()
	began, space := started(pid), namespace()
	if began == "" || space == "" {
		return ""
	}
	return strings.Join([]string{space, strconv.Itoa(pid), began}, " ")
}

// namespace identifies the boot and the namespace in which this process's ids are
// valid.
func namespace() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(boot)) + " " + pids
}

// started returns the start time of a process in ticks since the boot, or "" if
// there is no such process.
func started(pid int) string {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return ""
	}
	rest := string(b[strings.LastIndexByte(string(b), ')')+1:])
	if f := strings.Fields(rest); len(f) > 19 && f[0] != "Z" {
		return f[19]
	}
	return ""
}

// stateOf tells whether a process belongs to this machine and namespace, and whether
// it runs.
func stateOf(name string) (here, alive bool) {
	f := strings.Fields(name)
	if len(f) != 4 || f[0]+" "+f[1] != namespace() {
		return false, false
	}
	pid, err := strconv.Atoi(f[2])
	return err == nil, err == nil && started(pid) == f[3]
}

func died(name string) bool {
	here, alive := stateOf(name)
	return here && !alive
}

func runs(name string) bool {
	_, alive := stateOf(name)
	return alive
}
