package box

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"yardmaster/internal/box/driver"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/box/worktree"
	"yardmaster/internal/lazy"
)

// UnfitError reports a machine that cannot carry out runs as it is. It says in one
// sentence what is wrong and what to do about it.
type UnfitError struct {
	Reason string
	place  bool // another work folder may help
}

func (e *UnfitError) Error() string { return e.Reason }

// setup is how a box runs its agents: in which folders, with which program, at
// which levels of isolation.
//
// The agents of a root box are another user, so at the levels below Bubblewrap
// that user must be able to pass through every folder above what agents use. The
// data folder may be closed, for example in root's home. In that case agents use
// a work folder elsewhere, and a link in the data folder leads to it.
type setup struct {
	data    string // for the box alone: identity, spools, sockets
	work    string // for agents: checkouts, homes, caches; often the same as data
	program string // this program, at a path where agents may run it
	levels  []sandbox.Level
	holding holding
	// authorities is the file of the certificate authorities that git and agents trust,
	// or empty: those that they know themselves.
	authorities string

	scanning sync.Mutex // held during a search for agents
	scanned  bool
	scan     driver.Scan // of the last search, before versions were asked for
	mu       sync.Mutex
	agents   []driver.Found
	lacking  []driver.Lack

	made []string // files and folders that setup has made
	lock *os.File // lock of a work folder that is not the data folder
}

// workLink is the link in the data folder that leads to a work folder elsewhere.
const workLink = "work"

// WorkDir returns the work folder of the box with the data folder, or "" if it is
// the data folder itself.
func WorkDir(dataDir string) string {
	target, err := os.Readlink(filepath.Join(dataDir, workLink))
	if err != nil {
		return ""
	}
	return target
}

// RemoveWorkDir deletes the work folder of a stopped box if the box chose it
// itself. A work folder that the operator has named stays, because another box may
// use it too. A box that starts again makes its work folder anew.
func RemoveWorkDir(dataDir string) error {
	dir, err := filepath.Abs(dataDir)
	if err != nil {
		return err
	}
	work := WorkDir(dir)
	if filepath.Base(work) != workName(dir) {
		return nil
	}
	return worktree.RemoveTree(work)
}

// Inspect tests whether this machine can be a box with the configuration cfg,
// before it is enrolled, and makes its folders. undo deletes the folders again if
// the machine does not become a box. A machine that cannot be one is an
// *UnfitError.
func Inspect(ctx context.Context, cfg Config) (undo func(), err error) {
	if cfg, err = cfg.complete(); err != nil {
		return nil, err
	}
	if err := prepareProcess(); err != nil {
		return nil, err
	}
	fresh := &setup{made: missing(cfg.DataDir)}
	if len(fresh.made) > 0 {
		fresh.made = append(fresh.made, filepath.Join(cfg.DataDir, lockFile))
	}
	s, err := inspect(ctx, cfg)
	if err != nil {
		fresh.removeMade()
		return nil, err
	}
	cfg.Logger.Debug("the machine can be a box", "work", s.work, "isolation", s.levels)
	return func() {
		s.removeMade()
		fresh.removeMade()
	}, nil
}

func inspect(ctx context.Context, cfg Config) (*setup, error) {
	if err := makeFolder(cfg.DataDir); err != nil {
		return nil, unusable(cfg.DataDir, "--data", err)
	}
	lock, err := lockDir(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	s, err := setUp(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s.release()
	return s, nil
}

// prepareProcess prepares this process for being a box.
func prepareProcess() error {
	// The memory of this process holds secrets of runs. Without this an agent of
	// the same user could read it.
	if err := closeMemory(); err != nil {
		return fmt.Errorf("close our memory to others: %w", err)
	}
	if sandbox.Separate() {
		// Agents are another user, who must be able to read what is not secret.
		// Secret files have a mode of their own.
		unix.Umask(0o022)
	}
	return nil
}

// setUp finds out how the box will run its agents, repairs what it can, and tests
// the result. What it cannot repair is an *UnfitError.
func setUp(ctx context.Context, cfg Config) (*setup, error) {
	if err := CheckTools(ctx); err != nil {
		return nil, err
	}
	var first error
	for _, work := range workCandidates(cfg) {
		s, err := trySetup(ctx, cfg, work)
		if err == nil {
			s.scanAgents(ctx, cfg.Logger)
			if err := s.linkWork(cfg.Logger); err != nil {
				s.release()
				return nil, err
			}
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err() // the test was cancelled
		}
		if first == nil {
			first = err
		}
		var unfit *UnfitError
		if !errors.As(err, &unfit) || !unfit.place {
			break
		}
		cfg.Logger.Debug("work folder not used", "folder", work, "reason", err)
	}
	return nil, first
}

// toolWait limits how long a tool may take to print its version.
const toolWait = 10 * time.Second

// CheckTools tests the programs that the box itself runs; a failure is an
// *UnfitError. Agents may have another git: the first in the PATH of all users.
func CheckTools(ctx context.Context) error {
	git, err := exec.LookPath("git")
	if err != nil {
		return &UnfitError{Reason: "git is not installed on this machine, or is not in the PATH of the box: install git, which every run needs"}
	}
	call, cancel := context.WithTimeout(ctx, toolWait)
	defer cancel()
	cmd := exec.CommandContext(call, git, "--version")
	cmd.WaitDelay = time.Second // a script may have left a process behind
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case call.Err() != nil:
		return &UnfitError{Reason: fmt.Sprintf("%s does not tell its version within %s: "+
			"repair it, or put another git before it in the PATH of the box", git, toolWait)}
	case err != nil:
		return &UnfitError{Reason: fmt.Sprintf("%s does not work (%s): repair it, or put another git before it in the PATH of the box",
			git, strings.TrimSuffix(err.Error()+": "+firstLine(string(out)), ": "))}
	}
	return nil
}

// workCandidates lists the folders that may become the work folder, the best first.
func workCandidates(cfg Config) []string {
	if cfg.WorkDir != "" {
		return []string{cfg.WorkDir}
	}
	out := []string{}
	if kept := WorkDir(cfg.DataDir); kept != "" && ownLink(filepath.Join(cfg.DataDir, workLink)) {
		out = append(out, kept)
	}
	out = append(out, cfg.DataDir)
	if sandbox.Separate() {
		for _, dir := range []string{"/var/lib", "/var/tmp", "/tmp"} {
			out = append(out, filepath.Join(dir, workName(cfg.DataDir)))
		}
	}
	return out
}

// workName is the name of a work folder that the box chooses itself.
func workName(dataDir string) string {
	sum := sha256.Sum256([]byte(dataDir))
	return "yardmaster-box-" + hex.EncodeToString(sum[:6])
}

// trySetup makes dir the work folder and tests it.
func trySetup(ctx context.Context, cfg Config, dir string) (*setup, error) {
	s := &setup{data: cfg.DataDir, program: cfg.Self}
	err := s.makeFolders(cfg, dir)
	if err == nil {
		err = s.findLevels(ctx, cfg.Logger)
	}
	if err == nil {
		err = s.selfTest(ctx)
	}
	if err != nil {
		s.removeMade()
		return nil, err
	}
	return s, nil
}

// makeFolders makes the folders in dir and makes sure that agents may run this
// program.
func (s *setup) makeFolders(cfg Config, dir string) error {
	flag, checkMine := "--data", func() error { return nil }
	if dir != cfg.DataDir {
		flag, checkMine = "--work", func() error { return checkOwner(dir, dir == cfg.WorkDir) }
	}
	err := checkMine()
	if err == nil {
		err = s.makeFolder(dir)
	}
	if err == nil {
		err = checkMine() // somebody else may have made it meanwhile
	}
	if err == nil {
		s.work, err = filepath.EvalSymlinks(dir) // only the box may be able to follow a link
	}
	if err == nil && s.work == "/" {
		err = errors.New("it is the root of the file system")
	}
	if err == nil && strings.Contains(s.work, "\n") {
		err = errors.New("its path has a line break, which git does not take")
	}
	if err == nil {
		err = s.lockWork()
	}
	if err == nil {
		err = s.fill(cfg.Self)
	}
	if err == nil {
		s.removeLeftovers(cfg.Logger)
		err = s.checkSpace()
	}
	var unfit *UnfitError
	if err != nil && !errors.As(err, &unfit) {
		return unusable(dir, flag, err)
	}
	return err
}

// findLevels finds the levels of isolation that work. It tries a failed one once
// more, because the box has to do without that level until its next start.
func (s *setup) findLevels(ctx context.Context, log *slog.Logger) error {
	findings := sandbox.Probe(ctx, s.work, s.program)
	var closed *sandbox.ClosedError
	for i, f := range findings {
		if f.Err != nil && !errors.Is(f.Err, exec.ErrNotFound) && !errors.As(f.Err, &closed) {
			findings[i] = sandbox.ProbeLevel(ctx, f.Level, s.work, s.program)
		}
	}
	s.levels = sandbox.Held(findings)
	for _, f := range findings {
		if s.levels[0] != sandbox.Bubblewrap && errors.As(f.Err, &closed) {
			return s.closedError(closed) // the level may work in another folder
		}
	}
	for _, f := range findings {
		s.holding.note(f, log)
		if f.Err != nil {
			worth := slog.LevelDebug
			if !s.levels[0].AtLeast(f.Level) && !errors.Is(f.Err, exec.ErrNotFound) {
				worth = slog.LevelWarn // agents are less isolated because of it
			}
			log.Log(ctx, worth, "isolation not offered", "level", f.Level, "reason", f.Err)
		}
	}
	return nil
}

func unusable(dir, flag string, err error) *UnfitError {
	return &UnfitError{place: true, Reason: fmt.Sprintf("%s cannot be used (%s): choose another folder with %s", dir, plain(err), flag)}
}

// plain returns an error's text without the name of its package.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "sandbox: ") }

// closedError says which folder keeps agents from theirs.
func (s *setup) closedError(closed *sandbox.ClosedError) *UnfitError {
	at := *closed
	if strings.HasPrefix(at.For, s.work+"/") && (at.Path == s.work || strings.HasPrefix(s.work, strings.TrimSuffix(at.Path, "/")+"/")) {
		at.For = s.work // not the folder of a test
	}
	return &UnfitError{place: true, Reason: at.Error() + ": choose with --work a folder that this user can enter, " +
		"such as /var/lib/yardmaster-box, or install bubblewrap"}
}

// placeProgram makes sure that agents may run this program: where it is, or as a
// copy. Only its owner may run what "go run" or a build under umask 077 has made.
func (s *setup) placeProgram(self string) error {
	var closed *sandbox.ClosedError
	if err := sandbox.Closed(self); !errors.As(err, &closed) {
		return err
	}
	if place := s.copied(); s.program != place { // else runs may be reading the file
		s.program = place
	}
	from, err := os.Stat(self)
	if err != nil {
		return err
	}
	if have, err := os.Stat(s.program); err == nil && have.Size() == from.Size() && have.ModTime().Equal(from.ModTime()) {
		return nil // an earlier process has copied it
	}
	if err := s.makeFolder(filepath.Dir(s.program)); err != nil {
		return err
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	s.made = append(s.made, s.program)
	next := s.program + ".next"
	// A process that is started meanwhile inherits the open file for a moment, and
	// the kernel executes no file that is open for writing.
	syscall.ForkLock.RLock()
	err = os.WriteFile(next, text, 0o755)
	syscall.ForkLock.RUnlock()
	err = errors.Join(err, os.Chtimes(next, time.Time{}, from.ModTime()))
	if err == nil {
		err = os.Rename(next, s.program)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(next))
	}
	return nil
}

// ofTest matches the names of folders that tests make. The work folder may contain
// folders that are not the box's.
var ofTest = lazy.New(`^(selftest|sandbox-probe)-[0-9]+$`)

// removeLeftovers deletes the folders of tests that were killed.
func (s *setup) removeLeftovers(log *slog.Logger) {
	entries, err := os.ReadDir(s.work)
	if err != nil {
		log.Warn("work folder not read", "folder", s.work, "error", err)
	}
	for _, e := range entries {
		if !ofTest.MatchString(e.Name()) {
			continue
		}
		dir := filepath.Join(s.work, e.Name())
		if err := worktree.RemoveTree(dir); err != nil {
			log.Warn("folder of a test not removed", "folder", dir, "error", err)
		}
	}
}

// checkSpace returns an *UnfitError if the disks have too little space for a run.
func (s *setup) checkSpace() error { return s.checkSpaceBesides(0) }

// checkSpaceBesides is checkSpace under the assumption that use more bytes of the work folder's
// disk were free.
func (s *setup) checkSpaceBesides(use int64) error {
	for _, dir := range slices.Compact([]string{s.data, s.work}) {
		free, total := diskFree(dir)
		if sameDisk(dir, s.work) {
			free += use
		}
		if least := min(spaceToClaim, total/10); free < least {
			return &UnfitError{place: true, Reason: fmt.Sprintf("the disk that holds %s is full: "+
				"free at least %d MiB on it, which a run needs", dir, max(1, least>>20))}
		}
	}
	return nil
}

// runnableAgents leaves out the agents that the agents' user cannot execute.
// Bubblewrap can show an agent from any folder.
func (s *setup) runnableAgents(found []driver.Found, log *slog.Logger) []driver.Found {
	if s.levels[0] == sandbox.Bubblewrap {
		return found
	}
	return slices.DeleteFunc(found, func(f driver.Found) bool {
		for _, path := range append(slices.Clone(f.Argv), f.ReadOnly...) {
			var closed *sandbox.ClosedError
			if errors.As(sandbox.Closed(path), &closed) {
				log.Warn("agent not offered", "agent", f.Name, "program", f.Path, "reason", closed)
				return true
			}
		}
		return false
	})
}

// linkWork makes the link to a work folder elsewhere, so that the next process
// finds there what this one leaves.
func (s *setup) linkWork(log *slog.Logger) error {
	link := filepath.Join(s.data, workLink)
	apart, err := s.apart()
	if err != nil || !apart || WorkDir(s.data) == s.work {
		return err
	}
	log.Info("the checkouts, homes and caches of agents are in a work folder outside of the data folder",
		"work", s.work, "data", s.data)
	if before := WorkDir(s.data); before != "" {
		log.Warn("they were in another folder before: delete what is left there", "folder", before)
	}
	next := link + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("link the work folder: %w", err)
	}
	if err := os.Symlink(s.work, next); err != nil {
		return fmt.Errorf("link the work folder: %w", err)
	}
	if err := os.Rename(next, link); err != nil {
		return fmt.Errorf("link the work folder: %w", err)
	}
	s.made = append(s.made, link)
	return nil
}
