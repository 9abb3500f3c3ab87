package box

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"yardmaster/internal/box/worktree"
	"yardmaster/internal/lazy"
	"yardmaster/internal/protocol"
)

// loadOrphans loads the attempts of an earlier process. Their agents died with it;
// their work and their events are left. The control plane decides about them in its
// answer to the next hello.
func (b *box) loadOrphans() error {
	root := filepath.Join(b.cfg.DataDir, "runs")
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	if err := b.removeStrays(); err != nil {
		return err
	}
	for _, entry := range entries {
		dir := filepath.Join(root, entry.Name())
		if err := b.loadOrphan(dir); err != nil {
			// A broken run must not stop the others: the control plane notices at
			// hello that it is missing and gives the task to another box.
			b.log.Error("run cannot be taken up again", "dir", dir, "error", err)
			if err := worktree.RemoveTree(dir); err != nil {
				b.log.Warn("run not removed from the disk", "dir", dir, "error", err)
			}
		}
	}
	return nil
}

// removeStrays deletes the attempts in the work folder that the data folder does
// not know.
func (b *box) removeStrays() error {
	root := filepath.Join(b.setup.work, "runs")
	entries, err := os.ReadDir(root)
	for _, entry := range entries {
		known := filepath.Join(b.cfg.DataDir, "runs", entry.Name())
		if _, err := os.Stat(known); !errors.Is(err, os.ErrNotExist) || !ofAttempt(filepath.Join(root, entry.Name())) {
			continue
		}
		if err := worktree.RemoveTree(filepath.Join(root, entry.Name())); err != nil {
			b.log.Warn("run not removed from the disk", "dir", filepath.Join(root, entry.Name()), "error", err)
		}
	}
	return err
}

// attemptName matches the names of attempts' folders.
var attemptName = lazy.New(`^[A-Za-z0-9_-]+\.[0-9]+$`)

// ofAttempt tells whether a folder belongs to an attempt. A work folder that the
// operator has named may have contained other folders before.
func ofAttempt(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && attemptName.MatchString(filepath.Base(dir)) && !slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return !slices.Contains([]string{"task", "task.found", "home"}, e.Name())
	})
}

func (b *box) loadOrphan(dir string) error {
	var start protocol.Start
	if err := readJSON(filepath.Join(dir, "start.json"), &start); err != nil {
		return err
	}
	if err := checkStart(start); err != nil {
		return err
	}
	a := newAttempt(b.life, b.setup, start, b.log)
	if a.dir != dir {
		return fmt.Errorf("it belongs in %s", a.dir)
	}
	a.findWorkFolder(b.cfg.DataDir)
	if err := a.openSpool(); err != nil {
		return err
	}
	b.orphans[a.key()] = a
	return nil
}

// discard deletes an orphan.
func (b *box) discard(a *attempt, why string) {
	a.log.Info("run of an earlier process discarded", "reason", why)
	b.remove(a)
}

// wrapUp ends an orphan that the control plane still knows: it saves the work and
// reports the run as lost, so that the task is queued again without counting
// against it. An orphan with a command to halt ends as halted.
func (b *box) wrapUp(a *attempt) {
	if a.spool.Ended() {
		return
	}
	e := ending{severity: graceful, state: protocol.Lost, kind: "box_lost", detail: "the box's process ended during the run"}
	var halt protocol.Command
	switch err := readJSON(a.haltPath(), &halt); {
	case err == nil:
		e = haltEnding(halt)
	case !errors.Is(err, os.ErrNotExist):
		a.log.Warn("halt not read", "error", err)
	}
	w := b.reopen(a)
	if _, err := os.Stat(a.workspacePath()); w == nil && err == nil && e.state == protocol.Lost {
		e.detail += "; what it had done and not pushed was not found again"
	}
	a.end(e)
	b.conclude(a, w, result{})
}
