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
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"yardmaster/internal/box/driver"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/box/worktree"
)

// UnfitError is a machine that cannot carry out runs as it is. It says in one
// sentence what is wrong and what to do about it.
type UnfitError struct {
	Reason string
	place  bool // another work folder may do
}

func (e *UnfitError) Error() string { return e.Reason }

// setup is how a box runs its agents: in which folders, with which program, at
// which levels of isolation.
//
// Agents of a box of root are another user, so below Bubblewrap every folder
// above what they use must let that user pass. The data folder's need not: it
// may lie in root's home. Then what agents use is kept in a work folder
// elsewhere, to which a link in the data folder leads.
type setup struct {
	data    string // the box's own: identity, spools, sockets
	work    string // what agents use: checkouts, homes, caches; often the same
	program string // ours, where agents may run it
	levels  []sandbox.Level
	holding holding

	looking sync.Mutex // held while somebody looks for agents
	looked  bool
	scan    driver.Scan // of the last look, as it was before versions were asked for
	mu      sync.Mutex
	agents  []driver.Found
	lacking []driver.Lack

	made []string // files and folders that were not there before
	lock *os.File // of a work folder elsewhere
}

// workLink is the link in the data folder to a work folder elsewhere.
const workLink = "work"

// WorkDir is where a box with the data folder keeps what its agents use, if not
// in the data folder; empty otherwise.
func WorkDir(dataDir string) string {
	target, err := os.Readlink(filepath.Join(dataDir, workLink))
	if err != nil {
		return ""
	}
	return target
}

// RemoveWorkDir deletes the work folder of a box that does not run, if the box
// has found it itself. One that somebody has named stays: it may be another
// box's, too. A box that is started again makes it anew.
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

// Inspect tests whether this machine can be a box as cfg says, before it is
// enrolled as one, and makes its folders; undo deletes them again, if it does
// not become one. What is wrong is an *UnfitError.
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

// prepareProcess makes this process fit to be a box.
func prepareProcess() error {
	// Secrets of runs are in its memory, which an agent of the same user could
	// read but for this.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("close our memory to others: %w", err)
	}
	if sandbox.Separate() {
		// Agents are another user, who must be able to read what is not secret;
		// what is secret has a mode of its own.
		unix.Umask(0o022)
	}
	return nil
}

// setUp finds out how the box will run its agents, mends what it can, and
// tests it. What it cannot mend is an *UnfitError.
func setUp(ctx context.Context, cfg Config) (*setup, error) {
	if err := CheckTools(ctx); err != nil {
		return nil, err
	}
	var first error
	for _, work := range workCandidates(cfg) {
		s, err := trySetup(ctx, cfg, work)
		if err == nil {
			s.lookForAgents(ctx, cfg.Logger)
			if err := s.linkWork(cfg.Logger); err != nil {
				s.release()
				return nil, err
			}
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err() // nothing is known to be wrong
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

// toolWait is how long git may take to say its version.
const toolWait = 10 * time.Second

// CheckTools tries what the box itself runs. Agents may have another git: theirs
// is the first in the PATH that all users have.
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
		return &UnfitError{Reason: fmt.Sprintf("%s does not tell its version within %s: repair it, or put another git before it in the PATH of the box", git, toolWait)}
	case err != nil:
		return &UnfitError{Reason: fmt.Sprintf("%s does not work (%s): repair it, or put another git before it in the PATH of the box", git, strings.TrimSuffix(err.Error()+": "+firstLine(string(out)), ": "))}
	}
	return nil
}

// workCandidates are the folders to try for what agents use, the best first.
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

// workName is what a box calls a work folder that nobody has named.
func workName(dataDir string) string {
	sum := sha256.Sum256([]byte(dataDir))
	return "yardmaster-box-" + hex.EncodeToString(sum[:6])
}

// trySetup makes a work folder of dir and tests it.
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

// makeFolders makes the folders in dir, and sees to it that agents may run our
// program.
func (s *setup) makeFolders(cfg Config, dir string) error {
	flag, mine := "--data", func() error { return nil }
	if dir != cfg.DataDir {
		flag, mine = "--work", func() error { return checkOwner(dir, dir == cfg.WorkDir) }
	}
	err := mine()
	if err == nil {
		err = s.makeFolder(dir)
	}
	if err == nil {
		err = mine() // somebody else may have made it meanwhile
	}
	if err == nil {
		s.work, err = filepath.EvalSymlinks(dir) // a link may lie where only the box gets through
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
		err = s.room()
	}
	var unfit *UnfitError
	if err != nil && !errors.As(err, &unfit) {
		return unusable(dir, flag, err)
	}
	return err
}

// findLevels finds the levels of isolation that hold. What fails is tried once
// more: without a level the box goes on with less until it is started again.
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
			return s.closedError(closed) // in another folder the level may hold
		}
	}
	for _, f := range findings {
		s.holding.note(f, log)
		if f.Err != nil {
			worth := slog.LevelDebug
			if !s.levels[0].AtLeast(f.Level) && !errors.Is(f.Err, exec.ErrNotFound) {
				worth = slog.LevelWarn // agents are isolated less for it
			}
			log.Log(ctx, worth, "isolation not offered", "level", f.Level, "reason", f.Err)
		}
	}
	return nil
}

func unusable(dir, flag string, err error) *UnfitError {
	return &UnfitError{place: true, Reason: fmt.Sprintf("%s cannot be used (%s): choose another folder with %s", dir, plain(err), flag)}
}

// plain is an error without the name of the package that it comes from.
func plain(err error) string { return strings.TrimPrefix(err.Error(), "sandbox: ") }

// closedError says what keeps agents from their folders.
func (s *setup) closedError(closed *sandbox.ClosedError) *UnfitError {
	at := *closed
	if strings.HasPrefix(at.For, s.work+"/") && (at.Path == s.work || strings.HasPrefix(s.work, strings.TrimSuffix(at.Path, "/")+"/")) {
		at.For = s.work // and not the folder of a test
	}
	return &UnfitError{place: true, Reason: at.Error() + ": choose with --work a folder that this user can enter, such as /var/lib/yardmaster-box, or install bubblewrap"}
}

// placeProgram sees to it that agents may run our program: from where it is, or
// from a copy. What "go run" has built, or a build under umask 077, only its owner may.
func (s *setup) placeProgram(self string) error {
	var closed *sandbox.ClosedError
	if err := sandbox.Closed(self); !errors.As(err, &closed) {
		return err
	}
	if place := filepath.Join(s.work, "bin", "yardmaster"); s.program != place { // else runs may be reading it
		s.program = place
	}
	from, err := os.Stat(self)
	if err != nil {
		return err
	}
	if have, err := os.Stat(s.program); err == nil && have.Size() == from.Size() && have.ModTime().Equal(from.ModTime()) {
		return nil // by an earlier process
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
	// A process that is started meanwhile has what is being written open for a
	// moment, and no kernel executes a file that somebody may write.
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

// ofTest are the names of folders that tests are made in. The work folder may
// hold what is not the box's.
var ofTest = regexp.MustCompile(`^(selftest|sandbox-probe)-[0-9]+$`)

// removeLeftovers deletes what tests have left that were killed.
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

// room tells whether a run would find room on the disks.
func (s *setup) room() error { return s.roomBut(0) }

// roomBut is room if so many bytes of the work folder's disk were free besides.
func (s *setup) roomBut(use int64) error {
	for _, dir := range slices.Compact([]string{s.data, s.work}) {
		free, total := diskFree(dir)
		if sameDisk(dir, s.work) {
			free += use
		}
		if least := min(roomToClaim, total/10); free < least {
			return &UnfitError{place: true, Reason: fmt.Sprintf("the disk that holds %s is full: free at least %d MiB on it, which a run needs", dir, max(1, least>>20))}
		}
	}
	return nil
}

// runnableAgents leaves out the agents that the user whom they would run as cannot
// get at. Bubblewrap shows them wherever they are.
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

// linkWork leaves the link to a work folder elsewhere: the next process finds
// there what this one may leave.
func (s *setup) linkWork(log *slog.Logger) error {
	link := filepath.Join(s.data, workLink)
	apart, err := s.apart()
	if err != nil || !apart || WorkDir(s.data) == s.work {
		return err
	}
	log.Info("the checkouts, homes and caches of agents are in a work folder outside of the data folder", "work", s.work, "data", s.data)
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
