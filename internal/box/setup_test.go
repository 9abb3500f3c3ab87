package box_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"yardmaster/internal/box"
	"yardmaster/internal/box/sandbox"
	"yardmaster/internal/proof/patience"
	"yardmaster/internal/protocol"
)

// without is an environment in whose PATH some programs are not.
func without(t *testing.T, names ...string) string { return "PATH=" + programs(t, names...) }

// programs makes a folder with links to all programs of PATH but some.
func programs(t *testing.T, without ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		entries, err := os.ReadDir(from)
		if err != nil {
			continue // PATH may name what is not there
		}
		for _, e := range entries {
			if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, os.ErrExist) {
				t.Fatal(err)
			}
		}
	}
	for _, name := range without {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return dir
}

// shut moves the data folder of a box into one that only its owner may enter.
func shut(t *testing.T, cfg *box.Config) string {
	t.Helper()
	closed, err := os.MkdirTemp("", "closed-") // of mode 0700
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if work := box.WorkDir(filepath.Join(closed, "box")); work != "" {
			os.RemoveAll(work)
		}
		os.RemoveAll(closed)
	})
	data := filepath.Join(closed, "box")
	if err := os.Rename(cfg.DataDir, data); err != nil {
		t.Fatal(err)
	}
	cfg.DataDir = data
	return closed
}

func TestBoxInAClosedFolderWorks(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	shut(t, &cfg)
	stop := p.apart(cfg, without(t, "bwrap"))
	run := p.task(func(s *protocol.Start) {
		s.Prompt = "write a.txt one\ncommit add a\nsay done"
	})
	if _, f := p.finish(run); f.State != protocol.Succeeded || p.show(f.Tip, "a.txt") != "one" {
		t.Fatalf("finished %+v", f)
	}
	work := box.WorkDir(cfg.DataDir)
	if (work != "") != sandbox.Separate() {
		t.Fatalf("the work folder is %q", work)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	for _, dir := range []string{cfg.DataDir, filepath.Join(cfg.DataDir, "work")} {
		if left, err := filepath.Glob(filepath.Join(dir, "runs", "*")); err != nil || len(left) > 0 {
			t.Errorf("left in %s: %v, %v", dir, left, err)
		}
	}
	if work != "" {
		for _, name := range []string{"runs", "cache"} {
			info, err := os.Stat(filepath.Join(work, name))
			if err != nil || info.Mode().Perm() != 0o710 {
				t.Errorf("what agents use is open to all users of the machine: %s: %v, %v", name, info, err)
			}
		}
	}
	if info, err := os.Stat(filepath.Join(cfg.DataDir, "identity.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("identity: %v, %v", info, err)
	}
}

func TestMachineThatCannotBeABoxIsRefused(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) string {
		dir, err := os.MkdirTemp("", "open-")
		if err == nil {
			err = os.Chmod(dir, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		return dir
	}
	for name, x := range map[string]struct {
		without  string
		work     func(t *testing.T, dir string) string
		want     string
		anything bool // also of an ordinary user
	}{
		"closed folder above": {"bwrap", func(t *testing.T, dir string) string {
			must(t, os.Mkdir(filepath.Join(dir, "shut"), 0o700))
			return filepath.Join(dir, "shut", "in", "work")
		}, "/shut (mode 0700), a folder above ", false},
		"closed folder": {"bwrap", func(t *testing.T, dir string) string {
			must(t, os.Mkdir(filepath.Join(dir, "shut"), 0o700))
			return filepath.Join(dir, "shut")
		}, "/shut (mode 0700): choose with --work", false},
		"folder of everybody": {"", func(t *testing.T, dir string) string {
			must(t, os.Mkdir(filepath.Join(dir, "all"), 0o755))
			must(t, os.Chmod(filepath.Join(dir, "all"), 0o777))
			return filepath.Join(dir, "all")
		}, "/all is writable by others (mode 0777)", true},
		"file": {"", func(t *testing.T, dir string) string {
			must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
			return filepath.Join(dir, "file")
		}, "/file is not a folder", true},
		"line break": {"", func(t *testing.T, dir string) string { return filepath.Join(dir, "a\nb") }, "its path has a line break", true},
		"folder of another box": {"", func(t *testing.T, dir string) string {
			must(t, os.Mkdir(filepath.Join(dir, "theirs"), 0o755))
			lock, err := os.Create(filepath.Join(dir, "theirs", "lock"))
			must(t, err)
			t.Cleanup(func() { lock.Close() })
			must(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX))
			return filepath.Join(dir, "theirs")
		}, "another box is running with the folder ", true},
		"no git": {"git", func(t *testing.T, dir string) string { return dir }, "git is not installed on this machine", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := open(t)
			data := filepath.Join(dir, "above", "data")
			err := inspect(t, box.Config{DataDir: data, WorkDir: x.work(t, dir)}, without(t, strings.Fields(x.without)...))
			if !x.anything && !sandbox.Separate() {
				if err != nil {
					t.Errorf("for a user whom nothing of their own is closed to: %v", err)
				}
				return
			}
			var unfit *box.UnfitError
			if !errors.As(err, &unfit) || !strings.Contains(err.Error(), x.want) ||
				strings.ReplaceAll(err.Error(), "a\nb",
					"") != strings.Join(strings.Fields(strings.ReplaceAll(err.Error(), "a\nb", "")), " ") {
				t.Fatalf("%v", err)
			}
			for _, made := range []string{"in", "work"} {
				if _, err := os.Stat(filepath.Join(dir, "shut", made)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("left behind: %s, %v", made, err)
				}
			}
			if _, err := os.Stat(filepath.Dir(data)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the data folder was made: %v", err)
			}
		})
	}
}

// TestGitThatDoesNotWorkIsFound tests the box's own git, which is not the agents'.
func TestGitThatDoesNotWorkIsFound(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{"echo broken >&2; exit 3": "does not work (exit status 3: broken)",
		"exec sleep 1000": "does not tell its version"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			path := programs(t, "git")
			program(t, filepath.Join(path, "git"), script)
			var unfit *box.UnfitError
			err := inspect(t, box.Config{DataDir: filepath.Join(t.TempDir(), "data")}, "PATH="+path)
			if !errors.As(err, &unfit) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// passable is a folder that agents may pass through.
func passable(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "passable-")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	must(t, os.Chmod(dir, 0o755))
	return dir
}

// A work folder that somebody has named may hold what is theirs.
func TestWorkFolderKeepsWhatIsNotTheBoxes(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	work := filepath.Join(passable(t), "work")
	cfg.WorkDir = work
	theirs := []string{"runs/experiment", "runs/experiment.1/model", "selftest-data"}
	for _, name := range theirs {
		must(t, os.MkdirAll(filepath.Join(work, name), 0o755))
	}
	p.start(cfg)
	run := p.task(func(s *protocol.Start) { s.Prompt = "say done" })
	if _, f := p.finish(run); f.State != protocol.Succeeded {
		t.Errorf("finished %+v", f)
	}
	for _, name := range theirs {
		if _, err := os.Stat(filepath.Join(work, name)); err != nil {
			t.Error(err)
		}
	}
}

// inspect is box.Inspect in an environment of its own.
func inspect(t *testing.T, cfg box.Config, env ...string) error {
	t.Helper()
	cfg.Logger = nil
	config, err := json.Marshal(cfg)
	must(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "BOX_INSPECT="+string(config)), env...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == codeUnfit {
		return &box.UnfitError{Reason: string(out)}
	}
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Where others may write the data folder, they may have put the link there.
func TestLinkOfOthersIsNotFollowed(t *testing.T) {
	t.Parallel()
	dir := passable(t)
	data, victim := filepath.Join(dir, "data"), filepath.Join(dir, "victim")
	must(t, errors.Join(os.Mkdir(data, 0o755), os.Chmod(data, 0o777), os.Mkdir(victim, 0o755),
		os.Symlink(victim, filepath.Join(data, "work"))))
	_, err := box.Inspect(t.Context(), box.Config{DataDir: data})
	must(t, err)
	if made, err := os.ReadDir(victim); err != nil || len(made) > 0 {
		t.Errorf("made where the link leads: %v, %v", made, err)
	}
}

func TestInspectedMachineIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	cfg := box.Config{DataDir: filepath.Join(t.TempDir(), "box")}
	must(t, os.Chmod(filepath.Dir(filepath.Dir(cfg.DataDir)), 0o755))
	undo, err := box.Inspect(t.Context(), cfg)
	must(t, err)
	_, err = box.Inspect(t.Context(), cfg) // nothing is held
	must(t, err)
	left, err := filepath.Glob(filepath.Join(cfg.DataDir, "*", "*"))
	if more, _ := filepath.Glob(filepath.Join(cfg.DataDir, "selftest*")); err != nil ||
		len(append(left, more...)) > 1 { // a copy of the program, at most
		t.Errorf("left: %v, %v, %v", left, more, err)
	}
	undo()
	if _, err := os.Stat(cfg.DataDir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what was made for a box that is none is still there: %v", err)
	}
}

// The work of an agent whose box breaks meanwhile is not lost: it is collected
// when the box is whole again.
func TestWorkIsKeptUntilTheBoxIsFit(t *testing.T) {
	t.Parallel()
	path := programs(t)
	p := newPlane(t)
	p.apart(p.config(), "PATH="+path)
	git := filepath.Join(path, "git")
	real, err := os.Readlink(git)
	must(t, err)
	run := p.task(func(s *protocol.Start) {
		s.Prompt = "say at work\nrun while [ ! -e go ]; do sleep 0.05; done; rm go\nwrite a.txt one\nsay done"
	})
	p.saying(run, "at work")
	must(t, os.Remove(git))
	found, err := filepath.Glob(filepath.Join(p.data, "runs", run+".1", "task"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the checkout: %v, %v", found, err)
	}
	must(t, os.WriteFile(filepath.Join(found[0], "go"), nil, 0o666))
	p.until("the box says that it is unfit", func() bool {
		return p.presence != nil &&
			strings.Contains(p.presence.Unfit, "git is not installed")
	})
	must(t, os.Symlink(real, git))
	if _, f := p.finish(run); f.State != protocol.Succeeded || p.show(f.Tip, "a.txt") != "one" {
		t.Errorf("finished %+v", f)
	}
}

// A work folder that somebody has deleted is made again, with all that belongs in it, also
// where a run that was on its way has made a part of it.
func TestDeletedWorkFolderIsMadeAgain(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	shut(t, &cfg)
	p.apart(cfg, without(t, "bwrap"))
	p.until("a fit box beats", func() bool { return p.presence != nil && p.presence.State == "ready" && p.presence.Unfit == "" })
	if work := box.WorkDir(cfg.DataDir); work != "" { // else there is none apart from the data folder
		must(t, os.RemoveAll(work))
	}
	for {
		_, f := p.finish(p.task(func(s *protocol.Start) { s.Prompt = "say done" }))
		if f.State == protocol.Succeeded {
			return
		}
		if !slices.Contains([]string{protocol.FailureBoxUnfit, "checkout_failed"}, f.Kind) {
			t.Fatalf("finished %+v", f)
		}
	}
}

// What a box has found for itself may be deleted with it; what somebody has named
// may be another box's.
func TestOnlyAWorkFolderThatNobodyNamedIsRemoved(t *testing.T) {
	t.Parallel()
	path := without(t, "bwrap")
	p := newPlane(t)
	named := p.config()
	named.WorkDir = filepath.Join(passable(t), "named")
	must(t, inspect(t, named, path))
	must(t, box.RemoveWorkDir(named.DataDir))
	if _, err := os.Stat(named.WorkDir); err != nil || box.WorkDir(named.DataDir) != named.WorkDir {
		t.Errorf("the named folder: %v, the link leads to %q", err, box.WorkDir(named.DataDir))
	}
	found := p.config()
	shut(t, &found)
	must(t, inspect(t, found, path))
	work := box.WorkDir(found.DataDir)
	must(t, box.RemoveWorkDir(found.DataDir))
	if _, err := os.Lstat(work); work != "" && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the found folder %s: %v", work, err)
	}
}

// A fault of the box is not one of the run that meets it, nor of the next.
func TestBoxThatBecomesUnfitStopsAndRecovers(t *testing.T) {
	t.Parallel()
	path := programs(t)
	p := newPlane(t)
	p.apart(p.config(), "PATH="+path)
	p.until("a fit box beats", func() bool { return p.presence != nil && p.presence.State == "ready" && p.presence.Unfit == "" })
	git := filepath.Join(path, "git")
	real, err := os.Readlink(git)
	must(t, err)
	must(t, os.Remove(git))
	met := p.task(func(s *protocol.Start) { s.Prompt = "say never" })
	if _, f := p.finish(met); f.State != protocol.Failed || f.Kind != protocol.FailureBoxUnfit ||
		!strings.Contains(f.Error, "git is not installed") {
		t.Errorf("finished %+v", f)
	}
	p.until("the box says that it is unfit", func() bool {
		return p.presence != nil && p.presence.State == "unfit" && p.presence.Free == 0 &&
			strings.Contains(p.presence.Unfit, "git is not installed")
	})
	p.until("the claim that was on its way is answered", func() bool { return p.waiting == 0 })
	next := p.task(func(s *protocol.Start) { s.Prompt = "say done" })
	beats := p.beats()
	p.until("some beats later", func() bool { return p.beaten >= beats+3 })
	p.mu.Lock()
	if len(p.queue) != 1 {
		t.Error("an unfit box claims")
	}
	p.mu.Unlock()
	must(t, os.Symlink(real, git))
	if _, f := p.finish(next); f.State != protocol.Succeeded {
		t.Errorf("finished %+v", f)
	}
	p.until("the box says that it is fit", func() bool { return p.presence.State == "ready" && p.presence.Unfit == "" })
}

// A failure that only the run is to blame for leaves the box as it is.
func TestFaultOfARunIsNotTheBoxes(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	p.start(p.config())
	run := p.task(func(s *protocol.Start) { s.Agent = "nobody" })
	if _, f := p.finish(run); f.Kind != "setup_failed" {
		t.Errorf("finished %+v", f)
	}
	next := p.task(func(s *protocol.Start) { s.Prompt = "say done" })
	if _, f := p.finish(next); f.State != protocol.Succeeded {
		t.Errorf("finished %+v", f)
	}
	p.until("a fit box beats", func() bool { return p.presence != nil && p.presence.Unfit == "" })
}

// What an attempt leaves in a work folder elsewhere is found by the next
// process, and goes with the attempt.
func TestKilledBoxInAClosedFolderComesBackWithItsWork(t *testing.T) {
	t.Parallel()
	path := without(t, "bwrap")
	p := newPlane(t)
	cfg := p.config()
	shut(t, &cfg)
	first := p.process(cfg, path)
	run := p.task(func(s *protocol.Start) {
		s.Agent, s.Command = "command", []string{"/bin/sh", "-c", ticks}
	})
	p.until("some ticks", func() bool { return strings.Count(p.run(run).text(), "\n") > 20 })
	must(t, first.Process.Kill())
	first.Wait()
	stray := filepath.Join(cfg.DataDir, "work", "runs", "of-nobody.1")
	if sandbox.Separate() {
		must(t, os.Mkdir(stray, 0o711))
	}
	p.apart(cfg, path)
	if _, f := p.finish(run); f.State != protocol.Lost || !f.WIP || p.show("svc/t--12345678", "wip.txt") != "wip" {
		t.Errorf("finished %+v", f)
	}
	patience.Until(t, "nothing of it is left", func() bool {
		left, err := filepath.Glob(filepath.Join(cfg.DataDir, "work", "runs", "*"))
		return err == nil && len(left) == 0
	})
}

// The folder that agents use may be another one when the box comes back.
func TestWorkIsFoundWhereAnEarlierProcessKeptIt(t *testing.T) {
	t.Parallel()
	for name, before := range map[string]string{"data": "", "work": "before"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlane(t)
			cfg := p.config()
			dir := passable(t)
			if before != "" {
				cfg.WorkDir = filepath.Join(dir, before)
			}
			first := p.process(cfg)
			run := p.task(func(s *protocol.Start) {
				s.Agent, s.Command = "command", []string{"/bin/sh", "-c", ticks}
			})
			p.until("some ticks", func() bool { return strings.Count(p.run(run).text(), "\n") > 20 })
			must(t, first.Process.Kill())
			first.Wait()
			cfg.WorkDir = filepath.Join(dir, "after")
			p.start(cfg)
			if _, f := p.finish(run); f.State != protocol.Lost || !f.WIP || p.show("svc/t--12345678", "wip.txt") != "wip" {
				t.Errorf("finished %+v", f)
			}
		})
	}
}

func TestWorkThatIsNotFoundIsSaidToBeLost(t *testing.T) {
	t.Parallel()
	p := newPlane(t)
	cfg := p.config()
	first := p.process(cfg)
	run := p.task(func(s *protocol.Start) {
		s.Agent, s.Command = "command", []string{"/bin/sh", "-c", ticks}
	})
	p.until("some ticks", func() bool { return strings.Count(p.run(run).text(), "\n") > 20 })
	must(t, first.Process.Kill())
	first.Wait()
	must(t, os.RemoveAll(filepath.Join(cfg.DataDir, "cache")))
	p.start(cfg)
	if _, f := p.finish(run); f.State != protocol.Lost || f.WIP || !strings.Contains(f.Error, "was not found again") {
		t.Errorf("finished %+v", f)
	}
}
