package program

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"yardmaster/internal/child"
	"yardmaster/internal/unixfile"
	"yardmaster/internal/version"
)

// ErrSwap is returned by a box that has put a program on trial and makes room for it.
var ErrSwap = errors.New("another program takes over")

// mostStarts is how often a program on trial is started: the machine may have been switched off.
const mostStarts = 3

// grace is how long a program that is told to end may take before it is killed. A box that is
// told to leave has a minute for its runs; one on trial has none.
const grace = 10 * time.Second

// Supervision starts the program that is to run.
type Supervision struct {
	Store     *Store
	Installed string   // version of this program
	Args      []string // for a program that is started
	Logger    *slog.Logger
	// Here runs the box in this process.
	Here func(ctx context.Context) error
	// Free waits until no process runs a box with the data folder.
	Free func() error
}

// ExitError is the exit code of a program that has ended by itself.
type ExitError struct{ Code int }

func (e *ExitError) Error() string { return fmt.Sprintf("the program ended with exit code %d", e.Code) }

// Run runs the box until ctx ends: in this process as long as the box was given no other
// program, else in that one. It returns what the last of them came to.
func (v *Supervision) Run(ctx context.Context) error {
	var lock *os.File
	defer func() { lock.Close() }() // nil: no matter
	for {
		if lock == nil && v.Store.made() {
			var err error
			if lock, err = v.hold(); err != nil {
				return err
			}
		}
		c, trial, err := v.next()
		if err != nil {
			return err
		}
		if c == nil {
			if err = v.Here(ctx); !errors.Is(err, ErrSwap) || ctx.Err() != nil {
				return err
			}
			continue
		}
		if err := v.Free(); err != nil {
			return err
		}
		err = v.start(ctx, *c, trial)
		switch now, broken := v.Store.State(); {
		case broken != nil:
			return errors.Join(err, broken)
		case ctx.Err() != nil:
			return err
		case trial && now.Trial != nil && now.Trial.Of.SHA256 == c.Of.SHA256:
			why := "It did not give back its trial in time."
			if err != nil {
				why = "It did not come up: " + err.Error() + "."
			}
			if now.Trial.Why != "" {
				why += " It said: " + now.Trial.Why
			}
			v.Logger.Error("a new program did not prove itself, the box goes back", "version", c.Of.Version, "reason", why)
			if err := v.Store.Fail(now.Trial.Copy, why, time.Now()); err != nil {
				return err
			}
		case now.Trial != nil:
			v.Logger.Info("another program takes over", "version", now.Trial.Of.Version)
		default:
			return err
		}
	}
}

// made tells whether the box was given a program before.
func (s *Store) made() bool {
	_, err := os.Stat(s.statePath())
	return err == nil
}

// hold keeps another process from starting programs of the same folder.
func (v *Supervision) hold() (*os.File, error) {
	if err := v.Free(); err != nil {
		return nil, err
	}
	f, err := unixfile.Sole(filepath.Join(v.Store.dir, lockName))
	if errors.Is(err, unixfile.ErrHeld) {
		err = fmt.Errorf("another process starts the programs in %s: stop it first", v.Store.dir)
	}
	return f, err
}

// next is the program to start; nil is this one. It counts the starts of one on trial.
func (v *Supervision) next() (c *Copy, trial bool, err error) {
	now, err := v.Store.State()
	if err != nil {
		return nil, false, err
	}
	if t := now.Trial; t != nil {
		why := ""
		if t.Starts >= mostStarts {
			why = fmt.Sprintf("It was started %d times and did not give back its trial.", t.Starts)
		} else if err := v.Store.Whole(t.Copy); err != nil {
			why = "Its file is not what was verified: " + err.Error() + "."
		}
		if why == "" {
			err := v.Store.change(func(now *State) error { now.Trial.Starts++; return nil })
			return &t.Copy, true, err
		}
		if err := v.Store.Fail(t.Copy, why, time.Now()); err != nil {
			return nil, false, err
		}
	}
	if now.Current == nil {
		return nil, false, nil
	}
	if version.After(v.Installed, now.Current.Of.Version) {
		v.Logger.Info("the installed program is newer than the one that the box was given, and runs", "version", v.Installed)
		return nil, false, v.Store.change(func(now *State) error { now.Current, now.Previous = nil, nil; return nil })
	}
	if err = v.Store.Whole(*now.Current); err == nil {
		return now.Current, false, nil
	}
	v.Logger.Error("the program of the box is damaged, the one before runs", "version", now.Current.Of.Version, "error", err)
	before := now.Previous
	if before != nil && v.Store.Whole(*before) != nil {
		before = nil
	}
	return before, false, v.Store.change(func(now *State) error { now.Current, now.Previous = before, nil; return nil })
}

// start runs a program until it ends. It ends with ctx, and one on trial when its time is over.
func (v *Supervision) start(ctx context.Context, c Copy, trial bool) error {
	v.Logger.Info("start the program that the box was given", "version", c.Of.Version, "trial", trial)
	cmd := exec.Command(v.Store.Path(c), v.Args...)
	cmd.Env = append(os.Environ(), Variable+"="+c.Of.SHA256)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, os.Stdout, os.Stderr
	// Signals of a terminal go to this process alone, which passes them on; and the program ends
	// with this process.
	cmd.SysProcAttr = child.Group(syscall.SIGKILL)
	ended := make(chan error, 1)
	if err := child.Start(cmd, func(err error) { ended <- err }); err != nil {
		return err
	}
	var over <-chan time.Time
	if trial {
		timer := time.NewTimer(max(time.Duration(c.Of.TrialMS)*time.Millisecond, time.Second))
		defer timer.Stop()
		over = timer.C
	}
	for {
		select {
		case err := <-ended:
			return exitOf(err)
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			return exitOf(<-ended) // the program bounds how long it takes; a second signal ends this process
		case <-over:
			over = nil
			if now, err := v.Store.State(); err == nil && now.Trial == nil {
				continue // it is good
			}
			_ = cmd.Process.Signal(syscall.SIGTERM)
			select {
			case <-ended: //nolint:errcheck // it was told to end
			case <-time.After(grace):
				_ = cmd.Process.Kill()
				<-ended //nolint:errcheck // it was killed
			}
			return nil
		}
	}
}

// exitOf makes an *ExitError of the way in which a program ended.
func exitOf(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return fmt.Errorf("the program was ended by the signal %s", s.Signal())
	}
	return &ExitError{exit.ExitCode()}
}
