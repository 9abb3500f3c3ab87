package agent

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
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"yardmaster/internal/agent/driver"
	"yardmaster/internal/agent/sandbox"
	"yardmaster/internal/agent/worktree"
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
	agents  []driver.Found

	made []string // files and folders that were not there before
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

// Inspect tests whether this machine can be a box as cfg says, before it is
// enrolled as one. What is wrong is an *UnfitError.
func Inspect(ctx context.Context, cfg Config) error {
	cfg, err := cfg.complete()
	if err != nil {
		return err
	}
	if err := prepareProcess(); err != nil {
		return err
	}
	_, err = os.Stat(cfg.DataDir)
	fresh := errors.Is(err, os.ErrNotExist)
	if err := makeFolder(cfg.DataDir); err != nil {
		return unusable(cfg.DataDir, "--data", err)
	}
	lock, err := lockDir(cfg.DataDir)
	if err != nil {
		return err
	}
	defer lock.Close()
	s, err := setUp(ctx, cfg)
	if err != nil && fresh {
		if err := os.RemoveAll(cfg.DataDir); err != nil {
			cfg.Logger.Warn("folder not removed", "error", err)
		}
	}
	if err == nil {
		cfg.Logger.Debug("the machine can be a box", "work", s.work, "isolation", s.levels)
	}
	return err
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
	if err := checkTools(); err != nil {
		return nil, err
	}
	var first error
	for _, work := range workCandidates(cfg) {
		s, err := trySetup(ctx, cfg, work)
		if err == nil {
			s.agents = s.runnableAgents(driver.Detect(ctx), cfg.Logger)
			return s, s.linkWork(cfg.Logger)
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

// checkTools looks for what the box itself runs.
func checkTools() error {
	if _, err := exec.LookPath("git"); err != nil {
		return &UnfitError{Reason: "git is not installed on this machine, or is not in the PATH of the box: install git, which every run needs"}
	}
	return nil
}

// workCandidates are the folders to try for what agents use, the best first.
func workCandidates(cfg Config) []string {
	if cfg.WorkDir != "" {
		return []string{cfg.WorkDir}
	}
	out := []string{}
	if kept := WorkDir(cfg.DataDir); kept != "" {
		out = append(out, kept)
	}
	out = append(out, cfg.DataDir)
	if sandbox.Separate() {
		sum := sha256.Sum256([]byte(cfg.DataDir))
		for _, dir := range []string{"/var/lib", "/var/tmp", "/tmp"} {
			out = append(out, filepath.Join(dir, "yardmaster-box-"+hex.EncodeToString(sum[:6])))
		}
	}
	return out
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
	for _, name := range []string{filepath.Join(s.work, "runs"), filepath.Join(s.work, "cache"), filepath.Join(s.data, "runs")} {
		if err == nil {
			err = s.makeFolder(name)
		}
	}
	if err == nil {
		s.removeLeftovers(cfg.Logger)
		err = s.room()
	}
	if err == nil {
		err = s.placeProgram(cfg.Self)
	}
	var unfit *UnfitError
	if err != nil && !errors.As(err, &unfit) {
		return unusable(dir, flag, err)
	}
	return err
}

// findLevels finds the levels of isolation that hold.
func (s *setup) findLevels(ctx context.Context, log *slog.Logger) error {
	findings := sandbox.Probe(ctx, s.work, s.program)
	s.levels = sandbox.Held(findings)
	for _, f := range findings {
		if f.Err != nil {
			log.Debug("isolation not offered", "level", f.Level, "reason", f.Err)
		}
		var closed *sandbox.ClosedError
		if s.levels[0] != sandbox.Bubblewrap && errors.As(f.Err, &closed) {
			return s.closedError(closed) // in another folder the level may hold
		}
	}
	return nil
}

// makeFolder is the function of that name for what removeMade takes back.
func (s *setup) makeFolder(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		s.made = append(s.made, dir)
	}
	return makeFolder(dir)
}

// removeMade deletes what was made for nothing, unless something is in it.
func (s *setup) removeMade() {
	for _, path := range slices.Backward(s.made) {
		_ = os.Remove(path)
	}
}

// makeFolder makes a folder of the box, and lets the agents' user pass through
// it if that is another one. One that is there keeps its mode.
func makeFolder(dir string) error {
	err := os.MkdirAll(filepath.Dir(dir), 0o755)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	switch {
	case errors.Is(err, os.ErrExist):
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = &os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
		}
		return err
	case err == nil && sandbox.Separate():
		return os.Chmod(dir, 0o711)
	}
	return err
}

// checkOwner tells whether a folder that may be there already is the box's own: where
// everybody may make folders, somebody else may have made one of that name. One
// that whoever started the box has named may be a link, and its group's.
func checkOwner(dir string, named bool) error {
	var st unix.Stat_t
	look, others := unix.Lstat, uint32(0o022)
	if named {
		look, others = unix.Stat, 0o002
	}
	err := look(dir, &st)
	refuse := func(what string) error {
		return &UnfitError{place: true, Reason: dir + " " + what + ": choose another folder with --work"}
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return unusable(dir, "--work", err)
	case st.Mode&unix.S_IFMT != unix.S_IFDIR:
		return refuse("is not a folder")
	case int(st.Uid) != os.Geteuid():
		return refuse(fmt.Sprintf("belongs to another user (%d)", st.Uid))
	case st.Mode&others != 0:
		return refuse(fmt.Sprintf("is writable by others (mode %#o)", st.Mode&0o7777))
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

// placeProgram sees to it that agents may run our program: from where it is, or from a
// copy. What "go run" has built, or a build under umask 077, only its owner may.
func (s *setup) placeProgram(self string) error {
	var closed *sandbox.ClosedError
	if err := sandbox.Closed(self); !errors.As(err, &closed) {
		return err
	}
	s.program = filepath.Join(s.work, "bin", "yardmaster")
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
	err = errors.Join(os.WriteFile(next, text, 0o755), os.Chtimes(next, time.Time{}, from.ModTime()))
	if err == nil {
		err = os.Rename(next, s.program)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(next))
	}
	return nil
}

// removeLeftovers deletes what tests have left that were killed.
func (s *setup) removeLeftovers(log *slog.Logger) {
	for _, pattern := range []string{"selftest-*", "sandbox-probe-*"} {
		left, _ := filepath.Glob(filepath.Join(s.work, pattern)) // the pattern is well formed
		for _, dir := range left {
			if err := worktree.RemoveTree(dir); err != nil {
				log.Warn("folder of a test not removed", "folder", dir, "error", err)
			}
		}
	}
}

// room tells whether a run would find room on the disks.
func (s *setup) room() error {
	for _, dir := range slices.Compact([]string{s.data, s.work}) {
		free, total := diskFree(dir)
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
	data, err := filepath.EvalSymlinks(s.data)
	if err != nil || s.work == data || WorkDir(s.data) == s.work {
		return err
	}
	log.Info("the checkouts, homes and caches of agents are in a work folder outside of the data folder", "work", s.work, "data", s.data)
	next := link + ".next"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remember the work folder: %w", err)
	}
	if err := os.Symlink(s.work, next); err != nil {
		return fmt.Errorf("remember the work folder: %w", err)
	}
	if err := os.Rename(next, link); err != nil {
		return fmt.Errorf("remember the work folder: %w", err)
	}
	return nil
}
