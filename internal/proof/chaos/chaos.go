// Package chaos damages real processes and counts the losses. It runs a control
// plane, boxes and scripted agents as processes of their own, with loopback cables
// between them. It kills, freezes, cuts and refuses as a seed decides, while tasks
// are filed, cancelled, reassigned and redispatched. Then it lets everything settle,
// stops it, and reads a ledger from the database, the git host and every stored
// byte. The tests of the whole program use the parts (Cable, Process, Record, Scan),
// too.
//
// The same seed gives the same plan. What a program is doing when a fault meets it
// differs from run to run, so several runs of a seed find more.
package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options configure a run.
type Options struct {
	Seed     uint64
	Length   time.Duration // of the disorder; settling comes on top
	Boxes    int
	Nodes    int    // servers; 0: one
	Database string // an empty PostgreSQL database; SQLite when empty
	Data     string // folder to keep; a temporary one, kept only if something is wrong, when empty
	Out      io.Writer
	Self     string // the program to run as server and boxes
	// Astray answers in what the rows of a database and what is due there differ.
	Astray func(ctx context.Context, dsn string) ([]string, error)
}

// ErrFound says that the ledger has violations.
var ErrFound = errors.New("the ledger is not clean")

// Run runs everything and prints the ledger. It fails with ErrFound if the ledger has
// violations; after any other error there is no ledger.
func Run(ctx context.Context, o Options) (err error) {
	if o.Length <= 0 || o.Boxes < 1 {
		return errors.New("chaos needs some time and at least one box")
	}
	if o.Nodes > 1 && o.Database == "" {
		return errors.New("chaos with several nodes needs a PostgreSQL database")
	}
	kept := o.Data != ""
	if !kept {
		if o.Data, err = os.MkdirTemp("", "ymchaos"); err != nil {
			return err
		}
		defer func() {
			if err == nil {
				os.RemoveAll(o.Data)
			} else {
				fmt.Fprintf(o.Out, "Logs and data are kept in %s\n", o.Data)
			}
		}()
	}
	if o.Data, err = filepath.Abs(o.Data); err != nil {
		return err
	}
	if err := os.MkdirAll(o.Data, 0o711); err != nil {
		return err
	}
	// The agents of a box that runs as root are another user, who must be able to
	// reach their checkouts.
	if err := os.Chmod(o.Data, 0o711); err != nil {
		return err
	}
	if left, err := os.ReadDir(o.Data); err != nil || len(left) > 0 {
		return errors.Join(fmt.Errorf("%s is not an empty folder", o.Data), err)
	}
	w := &world{Options: o, began: time.Now(), found: map[Fault][]string{}, done: map[action]int{}, fit: map[string]bool{}}
	defer w.end()
	if err := w.begin(ctx); err != nil {
		return err
	}
	if err := w.disorder(ctx); err != nil {
		return err
	}
	if err := w.settle(ctx); err != nil {
		return err
	}
	if err := w.stop(); err != nil {
		w.report(Crash, err.Error())
	}
	l, err := w.read(ctx)
	if err != nil {
		return err
	}
	return w.print(l)
}

// report records a violation. It is safe for concurrent use.
func (w *world) report(f Fault, what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found[f] = append(w.found[f], what)
}

// say prints a line with the seconds since the start.
func (w *world) say(format string, a ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Fprintf(w.Out, "%6.1fs  %s\n", time.Since(w.began).Seconds(), fmt.Sprintf(format, a...))
}

func (w *world) count(what action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[what]++
}

// disorder carries the plan out. Two faults of one target wait for each other.
func (w *world) disorder(ctx context.Context) error {
	steps := plan(w.Seed, w.Length, w.Boxes, w.Nodes, w.Database != "")
	w.say("Seed %d, %d steps in %s.", w.Seed, len(steps), w.Length)
	began := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for _, s := range steps {
		if !pause(ctx, s.at-time.Since(began)) {
			break
		}
		g.Go(func() error { return w.do(ctx, s) })
	}
	defer w.restoreAll()
	return g.Wait()
}

// pause waits for d; false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(max(d, 0)):
		return true
	}
}

// ledger is the result of a run.
type ledger struct {
	states       map[string]int // of tasks
	runs, events int
	pulls        int
	bytes        int
}

func (w *world) print(l ledger) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	engine := "SQLite"
	if w.Database != "" {
		engine = "PostgreSQL"
	}
	fmt.Fprintf(w.Out, "\nLedger of seed %d: %s on %s, %d servers, %d boxes, %.0f s in all\n", w.Seed, w.Length, engine, len(w.nodes), w.Boxes,
		time.Since(w.began).Seconds())
	var did []string
	for what, n := range w.done {
		did = append(did, fmt.Sprintf("%s %d", what, n))
	}
	slices.Sort(did)
	fmt.Fprintf(w.Out, "  %s\n\n", strings.Join(did, ", "))
	line := func(name string, n int) { fmt.Fprintf(w.Out, "  %-24s %7d\n", name, n) }
	line("tasks filed", len(w.filed))
	for _, s := range []string{"merged", "completed", "failed", "cancelled"} {
		line("  "+s, l.states[s])
	}
	if w.putDown > 0 {
		fmt.Fprintf(w.Out, "  %-24s %7d\n", "  of which at the end", w.putDown)
	}
	line("runs", l.runs)
	line("events of runs", l.events)
	line("pull requests", l.pulls)
	line("bytes searched", l.bytes)
	fmt.Fprintln(w.Out)
	clean := true
	for _, f := range Faults {
		line(string(f), len(w.found[f]))
		for i, what := range w.found[f] {
			clean = false
			if i < 10 {
				fmt.Fprintf(w.Out, "      %s\n", what)
			}
		}
	}
	if !clean {
		return ErrFound
	}
	return nil
}
