package chaos

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"yardmaster/internal/client"
)

// do carries a step out, and undoes it after its length.
func (w *world) do(ctx context.Context, s step) error {
	b, n := w.boxes[s.target], w.nodes[s.node]
	switch s.what {
	case taskFiled:
		return w.file(ctx, s)
	case taskCancelled:
		return w.change(ctx, s, "cancel")
	case taskReassigned:
		return w.change(ctx, s, "reassign")
	case taskRedispatched:
		return w.change(ctx, s, "redispatch")

	case serverKilled:
		n.fault.Lock()
		defer n.fault.Unlock()
		w.tell(s, n.name+" is killed")
		n.Kill()
		pause(ctx, s.length)
		return w.serve(ctx, n)
	case serverFrozen:
		w.during(ctx, s, &n.fault, n.name+" is frozen", n.Freeze, n.Thaw)
	case serverCut:
		w.during(ctx, s, &n.fault, n.name+" is cut off from the boxes and the other nodes", n.cut, n.restore)
	case databaseCut:
		w.during(ctx, s, &n.fault, n.name+" is cut off from the database", n.database.Cut, n.database.Restore)
	case boxKilled:
		b.fault.Lock()
		defer b.fault.Unlock()
		w.tell(s, b.name+" is killed")
		b.Kill()
		pause(ctx, s.length)
		return w.runBox(b)
	case boxFrozen:
		w.during(ctx, s, &b.fault, b.name+" is frozen", b.Freeze, b.Thaw)
	case lineCut:
		w.during(ctx, s, &b.fault, b.name+" is cut off from the bus", b.line.Cut, b.line.Restore)
	case webCut:
		w.during(ctx, s, &w.hostTurn, "all boxes are cut off from the API and git", w.web.Cut, w.web.Restore)
	case linesBroken:
		w.tell(s, "every connection of a box is reset")
		w.web.Break()
		for _, b := range w.boxes {
			b.line.Break()
		}
	case pushRefused:
		w.hostTurn.Lock()
		defer w.hostTurn.Unlock()
		w.tell(s, "the git host refuses pushes")
		err := w.refuse(ctx, true)
		pause(ctx, s.length)
		return errors.Join(err, w.refuse(context.WithoutCancel(ctx), false))
	case serverSet:
		n.fault.Lock()
		defer n.fault.Unlock()
		w.tell(s, fmt.Sprintf("the clock of %s is set to be %s ahead", n.name, s.ahead))
		n.ahead = s.ahead
		n.Set(n.ahead)
	case boxSet:
		b.fault.Lock()
		defer b.fault.Unlock()
		w.tell(s, fmt.Sprintf("the clock of %s is set to be %s ahead", b.name, s.ahead))
		b.ahead = s.ahead
		b.Set(b.ahead)
	case databaseLost:
		w.tell(s, "the server loses its connections to the database")
		return w.terminate(ctx)
	}
	return nil
}

// during does a step for its length, while nothing else is done to what turn is the lock of.
func (w *world) during(ctx context.Context, s step, turn sync.Locker, what string, begin, end func()) {
	turn.Lock()
	defer turn.Unlock()
	w.tell(s, what)
	begin()
	pause(ctx, s.length)
	end()
}

func (w *world) tell(s step, what string) {
	w.count(s.what)
	if s.length > 0 {
		what += fmt.Sprintf(" for %.1f s", s.length.Seconds())
	}
	w.say("%s", what)
}

// bare is the repository as the server stores it.
func (w *world) bare() (string, error) {
	found, err := filepath.Glob(filepath.Join(w.path("server*"), "git", "*", project+".git"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("the server has %d repositories", len(found))
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// refuse makes git refuse pushes to the branches of tasks, as a git host with rules
// for branches does.
func (w *world) refuse(ctx context.Context, on bool) error {
	dir, err := w.bare()
	if err != nil {
		return err
	}
	args := []string{"config", "--local", "receive.hideRefs", "refs/heads/svc"}
	if !on {
		args = []string{"config", "--local", "--unset-all", "receive.hideRefs"}
	}
	_, err = client.Git(ctx, dir, "", "", args...)
	return err
}

// terminate ends the server's connections to PostgreSQL.
func (w *world) terminate(ctx context.Context) error {
	d, err := w.database()
	if err != nil {
		return err
	}
	defer d.Close()
	_, err = Record{DB: d}.rows(ctx,
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	return err
}

// restoreAll undoes the faults that an interrupted plan has left.
func (w *world) restoreAll() {
	w.web.Restore()
	for _, n := range w.nodes {
		n.restore()
		if n.database != nil {
			n.database.Restore()
		}
		n.Thaw()
		n.ahead = 0
		n.Set(0)
	}
	for _, b := range w.boxes {
		b.line.Restore()
		b.Thaw()
		b.ahead = 0
		b.Set(0)
	}
}

// settle waits until no task moves by itself any more, and cancels those that wait
// for a person or for a time much later.
func (w *world) settle(ctx context.Context) error {
	w.say("The disorder is over.")
	for _, b := range w.boxes {
		if b.Ended() {
			w.report(Crash, fmt.Sprintf("%s ended by itself: %s", b.name, tail(b.Output())))
			if err := w.runBox(b); err != nil {
				return err
			}
		}
	}
	for _, n := range w.nodes {
		if n.Ended() {
			w.report(Crash, n.name+" ended by itself: "+tail(n.Output()))
			if err := w.serve(ctx, n); err != nil {
				return err
			}
		}
	}
	// If nothing has happened for so long as for a process that hangs, nothing will: a merge
	// whose server died waits 90 s.
	var last string
	since, began := time.Now(), time.Now()
	for {
		open, err := w.open(ctx)
		if err != nil {
			return err
		}
		var now string
		active := 0
		for _, t := range open {
			now += fmt.Sprint(t.ID, t.Status, t.Attempt, t.Stuck, ";")
			if !waits(t) {
				active++
			}
		}
		if now != last {
			last, since = now, time.Now()
		}
		if len(open) == 0 {
			break
		}
		// The first step of the retry ladder is worth waiting for.
		if active == 0 && time.Since(since) > 10*time.Second && time.Since(began) > min(w.Length, 40*time.Second) ||
			time.Since(since) > hung {
			for _, t := range open {
				if !waits(t) {
					w.report(TaskLost, fmt.Sprintf("nothing moves task %s: %+v", t.ID, t))
				}
				w.putDown++
				if err := w.c.Call(ctx, "POST", "/v1/tasks/"+t.ID+"/cancel", nil, nil); err != nil {
					return err
				}
			}
			break
		}
		if !pause(ctx, 300*time.Millisecond) {
			return ctx.Err()
		}
	}
	w.say("All tasks have ended.")
	// Boxes clean up after runs that were taken from them.
	return until(ctx, "the boxes are empty", func() (bool, error) {
		for _, b := range w.boxes {
			if left, err := filepath.Glob(filepath.Join(b.data, "runs", "*")); err != nil || len(left) > 0 {
				return false, err
			}
		}
		return true, nil
	})
}
