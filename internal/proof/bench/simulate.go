package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"golang.org/x/sync/errgroup"

	"yardmaster/internal/db"
	"yardmaster/internal/db/dbtest"
)

// fleetPlan is what a simulation of a fleet drives.
type fleetPlan struct {
	boxes, tasks int
	timeout      time.Duration // of a box's attempt to connect
	watch        time.Duration // how long the boxes do nothing but beat
	database     string        // of PostgreSQL, and empty; SQLite when empty
}

// simulateFleet is `bench fleet`: it drives many boxes and tasks through a server of its own, and
// prints what the server, the bus and the database cost of each.
func simulateFleet(ctx context.Context, args []string, out io.Writer) (err error) {
	var p fleetPlan
	fl := flag.NewFlagSet("fleet", flag.ContinueOnError)
	fl.IntVar(&p.boxes, "boxes", 1000, "`NUMBER` of boxes")
	fl.IntVar(&p.tasks, "tasks", 5000, "`NUMBER` of tasks, each filed, claimed, accepted and finished")
	fl.DurationVar(&p.timeout, "timeout", 10*time.Second, "of a box's attempt to connect")
	fl.DurationVar(&p.watch, "watch", 20*time.Second, "how long the boxes do nothing but beat")
	fl.StringVar(&p.database, "database", "", "postgres://… of an empty database, or sqlite; a throwaway PostgreSQL when empty")
	dir := fl.String("data", "", "folder for the data, on the disk to measure; the temporary one when empty")
	if err := fl.Parse(args); err != nil {
		return err
	}
	if p.boxes < 1 || p.tasks < 1 || p.timeout <= 0 {
		return errors.New("--boxes and --tasks must be 1 or more, and --timeout more than nothing")
	}
	b := &bench{}
	if b.dir, err = os.MkdirTemp(*dir, "yardmaster-fleet-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	b.bin = filepath.Join(b.dir, "yardmaster")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", b.bin, "yardmaster/cmd/yardmaster").CombinedOutput(); err != nil {
		return fmt.Errorf("build the program: %w\n%s", err, out)
	}
	switch p.database {
	case "sqlite":
		p.database = ""
	case "":
		dsn, drop, err := dbtest.Throwaway(ctx, db.Postgres, "")
		if err != nil {
			return err
		}
		defer drop()
		p.database = dsn
	}
	bus, err := freePort()
	if err != nil {
		return err
	}
	f := &fleetRun{fleetPlan: p, b: b, out: out, flags: []string{"--nats-listen", bus}}
	if p.database != "" {
		f.flags = append(f.flags, "--database", p.database)
		if f.pool, err = sql.Open("pgx", p.database); err != nil {
			return err
		}
		defer f.pool.Close()
	}
	if f.w, err = b.settle(ctx, "fleet", f.flags...); err != nil {
		return err
	}
	defer func() { f.w.stop() }()
	return f.run(ctx)
}

// fleetRun is a simulation under way.
type fleetRun struct {
	fleetPlan
	b     *bench
	w     *world
	out   io.Writer
	flags []string
	pool  *sql.DB // nil: SQLite
	all   []*machine
	last  reading
	again atomic.Int64 // calls of boxes that were said again
}

// reading is what was used up by a moment.
type reading struct {
	at             time.Time
	server, engine time.Duration // processor time; of the database only if it is PostgreSQL on this machine
	connections    int64
	kept           int64 // bytes that the database holds
	bus            uint64
}

func (f *fleetRun) read(ctx context.Context) (r reading, err error) {
	r = reading{at: time.Now(), server: f.w.busy()}
	for _, x := range f.all {
		in, out := x.conn.Bytes()
		r.bus += in + out
	}
	if f.pool == nil {
		c, err := f.w.cost(ctx)
		r.kept = c.kept
		return r, err
	}
	var pid int
	err = f.pool.QueryRowContext(ctx, `SELECT pg_backend_pid(), pg_database_size(current_database()),
		(SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid())`).
		Scan(&pid, &r.kept, &r.connections)
	r.engine = familyOf(pid)
	return r, err
}

// familyOf is the processor time of the PostgreSQL server that a process serves for, and of all
// processes that it has now and has had; 0 if it is not on this machine.
func familyOf(pid int) (sum time.Duration) {
	parent, _, ok := statOf(strconv.Itoa(pid))
	if !ok {
		return 0
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0
	}
	for _, dir := range all {
		name := filepath.Base(dir)
		if above, used, ok := statOf(name); ok && (above == parent || name == parent) {
			sum += used
		}
	}
	return sum
}

// statOf is the parent of a process, and its processor time with that of its children that
// have ended.
func statOf(pid string) (parent string, used time.Duration, ok bool) {
	text, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return "", 0, false
	}
	f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	for _, field := range f[11:15] {
		n, _ := strconv.Atoi(field)
		used += time.Duration(n) * 10 * time.Millisecond // USER_HZ is 100
	}
	return f[1], used, true
}

// says prints a row, and what was used up since the row before, divided by n.
func (f *fleetRun) says(ctx context.Context, what string, n int, each string) error {
	now, err := f.read(ctx)
	if err != nil {
		return err
	}
	was := f.last
	f.last = now
	engine := "in the server"
	if f.pool != nil {
		engine = us((now.engine - was.engine) / time.Duration(n))
	}
	fmt.Fprintf(f.out, "| %s | %.1f s | %s | %s | %.1f KB | %.1f KB | %d | %s |\n", what, now.at.Sub(was.at).Seconds(),
		us((now.server-was.server)/time.Duration(n)), engine, float64(now.bus-min(now.bus, was.bus))/float64(n)/1e3,
		float64(now.kept-was.kept)/float64(n)/1e3, now.connections, each)
	return nil
}

func (f *fleetRun) run(ctx context.Context) (err error) {
	fmt.Fprintf(f.out, "%d boxes, %d tasks, load average %s\n\n", f.boxes, f.tasks, loadAverage())
	fmt.Fprintln(f.out, "| What | Took | Processor of the server, each | of the database | bus, each | kept, each | connections to the database | |")
	fmt.Fprintln(f.out, "|---|---|---|---|---|---|---|---|")
	empty, err := f.w.memory()
	if err != nil {
		return err
	}
	if f.last, err = f.read(ctx); err != nil {
		return err
	}
	if err := f.join(ctx); err != nil {
		return err
	}
	defer func() {
		for _, x := range f.all {
			x.close()
		}
	}()
	full, err := f.w.memory()
	if err != nil {
		return err
	}
	memory := "resident memory " + kb((full-empty)/int64(f.boxes))
	if err := f.says(ctx, "a box enrolls, connects and says hello", f.boxes, memory); err != nil {
		return err
	}
	if err := wait(ctx, f.watch); err != nil {
		return err
	}
	if err := f.says(ctx, fmt.Sprintf("a box beats for %s", f.watch), f.boxes, ""); err != nil {
		return err
	}
	filing := load{clients: 8, method: http.MethodPost, url: f.w.url + "/v1/tasks", token: f.w.pat, body: filing,
		status: http.StatusAccepted}
	if _, err := filing.run(ctx, f.w.process, 0, int64(f.tasks), new(atomic.Int64)); err != nil {
		return err
	}
	if err := f.says(ctx, "a task is filed, by 8 clients", f.tasks, ""); err != nil {
		return err
	}
	if err := f.work(ctx); err != nil {
		return err
	}
	said := fmt.Sprintf("calls of boxes that were said again: %d", f.again.Load())
	if err := f.says(ctx, "a task is claimed, accepted and finished", f.tasks, said); err != nil {
		return err
	}
	return f.restart(ctx)
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// join brings all boxes to the server.
func (f *fleetRun) join(ctx context.Context) error {
	f.all = make([]*machine, f.boxes)
	g, racing := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i := range f.all {
		g.Go(func() error {
			who, err := f.w.enroll(racing, fmt.Sprintf("box-%d", i), 1)
			if err == nil {
				f.all[i], err = attachFor(ctx, who, 1, f.timeout)
			}
			return err
		})
	}
	return g.Wait()
}

// work has the boxes carry out all tasks.
func (f *fleetRun) work(ctx context.Context) error {
	g, racing := errgroup.WithContext(ctx)
	var left atomic.Int64
	left.Store(int64(f.tasks))
	for _, x := range f.all {
		x.again = &f.again
		g.Go(func() error {
			for left.Add(-1) >= 0 {
				run, _, err := x.take(racing)
				if err == nil {
					err = x.finish(racing, run)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// longestReturn is for how long boxes may stay away once the server was started again.
const longestReturn = 2 * time.Minute

// restart kills the server and starts it again, and waits until every box is answered.
func (f *fleetRun) restart(ctx context.Context) error {
	if err := f.w.cmd.Process.Kill(); err != nil {
		return err
	}
	<-f.w.gone
	begin := time.Now()
	p, took, err := f.b.serve(ctx, f.w.data, f.flags...)
	if err != nil {
		return err
	}
	f.w.process = p
	var mu sync.Mutex
	var times []time.Duration
	waiting, cancel := context.WithTimeout(ctx, longestReturn)
	defer cancel()
	g, racing := errgroup.WithContext(waiting)
	for _, x := range f.all {
		g.Go(func() error {
			for {
				if err := x.conn.Wait(racing); err != nil {
					return err
				}
				if x.call(racing, "ping", struct{}{}, nil) == nil {
					break
				}
				if err := racing.Err(); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			times = append(times, time.Since(begin))
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("%d of %d boxes are back %s after the server was started again: %w", len(times), f.boxes, longestReturn, err)
	}
	fmt.Fprintf(f.out, "\nThe server is killed and started again with %d boxes that give up an attempt to connect after %s: it answers after %.1f s, "+
		"half of the boxes are back after %.1f s, the last after %.1f s.\n", f.boxes, f.timeout, took.Seconds(),
		percentile(times, 50).Seconds(), percentile(times, 100).Seconds())
	return nil
}
